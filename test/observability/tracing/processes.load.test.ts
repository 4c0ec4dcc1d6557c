import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const SOURCES = new URL('../../../src/', import.meta.url);

/** Resolves to the packages of OpenTelemetry that a new process loads with a file below src/. */
async function packagesLoadedWith(file: string): Promise<string[]> {
  const script = `
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (specifier.startsWith('@opentelemetry/')) console.log(specifier);
        return next(specifier, context);
      },
    });
    await import(${JSON.stringify(new URL(file, SOURCES).href)});`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return stdout.split('\n').filter((line) => line !== '');
}

it("a gateway loads OpenTelemetry's packages only for traces", async () => {
  // prom-client imports that one itself.
  expect(await packagesLoadedWith('process/gateway.ts')).toEqual(['@opentelemetry/api']);
  expect(await packagesLoadedWith('observability/tracing/tracer.ts')).toContain('@opentelemetry/sdk-trace');
});
