import { describe } from 'vitest';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { walk } from './walk.ts';

describe.each([EMBEDDED_STORE])('over $name', walk);
