import { describe } from 'vitest';
import { EMBEDDED_STORE } from '../../support/gateway.ts';
import { portalPages } from './pages.ts';

describe.each([EMBEDDED_STORE])('over $name', portalPages);
