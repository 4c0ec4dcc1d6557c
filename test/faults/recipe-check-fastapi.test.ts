/** The middleware for FastAPI in docs/check.md, where Python has FastAPI, httpx and uvicorn. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { CHECK_TOKEN, createLimitedKey, startCheckSystem } from '../check/support.ts';
import { temporaryFolder } from '../docs/recipes/support.ts';
import { bearer } from '../support/admin.ts';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { eventually } from '../support/eventually.ts';

const PAGE = readFileSync(new URL('../../docs/check.md', import.meta.url), 'utf8');
const [, BLOCK = ''] = /^```python\n([\s\S]*?)^```/m.exec(PAGE) ?? [];
const PYTHON = inject('pythonWithFastApi');

test('has at most 15 lines', () => expect(BLOCK.trim().split('\n').length).toBeLessThanOrEqual(15));

test.runIf(PYTHON !== '')('admits by the key, sends the refusal, and fails closed', async () => {
  const { gateway, key } = await startCheckSystem({ limit: 1 });
  const limited = await createLimitedKey(gateway);
  const [folder, port] = [temporaryFolder(), await freePort()];
  const program = [
    'import os, httpx, uvicorn',
    'from fastapi import FastAPI, Request',
    'from fastapi.responses import JSONResponse',
    BLOCK.replace('http://127.0.0.1:8084', gateway.check),
    'app = FastAPI()',
    'app.middleware("http")(tollgate)',
    '@app.get("/{rest:path}")',
    'async def any(request: Request): return {"customer": request.state.tollgate["customer"]}',
    `uvicorn.run(app, host="127.0.0.1", port=${port}, log_level="warning")`,
  ];
  writeFileSync(join(folder, 'app.py'), program.join('\n'));
  const env = { ...CHILD_ENVIRONMENT, TOLLGATE_CHECK_TOKEN: CHECK_TOKEN };
  const child = spawn(PYTHON, ['app.py'], { cwd: folder, env, stdio: 'inherit' });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    return { status: response.status, body: await response.json() };
  };
  await eventually('the application serves', async () => (await get('/v1/open')).status === 401);
  expect(await get('/v1/open/1?q=1', bearer(key))).toMatchObject({ status: 200, body: { customer: 'acme' } });
  expect(await get('/v1/open', bearer(key))).toMatchObject({ status: 429, body: { code: 'quota_exceeded' } });
  expect(await get('/v1/orders/1', bearer(limited))).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  });
  expect((await get('/v1/%6frders/1', bearer(limited))).body).toMatchObject({ code: 'bad_request' });
  await gateway.close();
  expect((await get('/v1/open', bearer(key))).status).toBe(503);
});
