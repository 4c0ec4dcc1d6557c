import { describe } from 'vitest';
import { REDIS_STORE } from '../../support/gateway.ts';
import { walk } from './walk.ts';

describe.each([REDIS_STORE])('over $name', walk);
