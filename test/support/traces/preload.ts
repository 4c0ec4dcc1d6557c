/** Preloaded into gateways that a traced test starts (`--import`). Their workers inherit it. */

import { TRACE_FOLDER } from './environment.ts';
import { recordTraces } from './record.ts';

recordTraces(() => process.env[TRACE_FOLDER]);
