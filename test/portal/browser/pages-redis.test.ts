import { describe } from 'vitest';
import { REDIS_STORE } from '../../support/gateway.ts';
import { portalPages } from './pages.ts';

describe.each([REDIS_STORE])('over $name', portalPages);
