/** The README's section on customers and keys, followed by copy and paste. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { startQuickStart } from '../support/process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PROMPT = '$ ';

/** The lines of the chapter's blocks: commands, in a console with what they print. */
async function readChapter(): Promise<string[]> {
  const [, text = ''] = (await readFile(`${ROOT}/README.md`, 'utf8')).split('\n### Customers and keys\n');
  const [chapter = ''] = text.split('\n### ');
  return [...chapter.matchAll(/^```(sh|console)\n(.*?)^```$/gms)].flatMap(([, language, block = '']) => {
    const lines = block.split('\n').slice(0, -1);
    return language === 'sh' ? lines.map((line) => PROMPT + line) : lines;
  });
}

/** Replaces what differs between runs: ids and times. */
function withoutChance(text: string): string {
  return (
    text
      .replaceAll(/key_[0-9A-Za-z]{19}/g, 'key_')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID')
      .replaceAll(/"reset_seconds":\d+/g, '"reset_seconds":0')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
      // A JSON body ends without a line break.
      .replaceAll('}$ ', '}\n$ ')
      .replaceAll(/ +/g, ' ')
  );
}

it('prints what it shows', async () => {
  const gateway = await startQuickStart({ TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN });
  const lines = await readChapter();
  const adapted = (command: string) =>
    command.replace('http://127.0.0.1:8080', gateway.public).replace('"$@";', `"$@" --admin-url ${gateway.admin};`);
  const script = lines
    .filter((line) => line.startsWith(PROMPT))
    .map((line) => line.slice(PROMPT.length))
    .map((command) => `cat <<'END'\n${PROMPT}${command}\nEND\n${adapted(command)}\n`);

  const shell = spawn('bash', ['-euc', `exec 2>&1\n${script.join('')}`], {
    cwd: ROOT,
    env: { ...process.env, ...CHILD_ENVIRONMENT, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const [status] = await once(shell, 'close');
  expect(status, printed).toBe(0);
  const shown = withoutChance(`${lines.join('\n')}\n`).split('\n');
  // npm may have something to say about the machine that it runs on.
  const told = withoutChance(printed)
    .split('\n')
    .filter((line) => !line.startsWith('npm warn'));
  expect(told).toEqual(shown);
  expect(shown.length).toBeGreaterThan(30);
});
