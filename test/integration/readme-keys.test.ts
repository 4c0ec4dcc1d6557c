/** The README's chapter on keys, followed by copy and paste. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { CHILD_ENVIRONMENT } from '../support/child-environment.ts';
import { ADMIN_TOKEN } from '../support/gateway.ts';
import { startSystem } from '../support/system.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PROMPT = '$ ';

/** The lines of the chapter's blocks: commands, in a console with what they print. */
async function readChapter(): Promise<string[]> {
  const [, text = ''] = (await readFile(`${ROOT}/README.md`, 'utf8')).split('\n## Keys\n');
  const [chapter = ''] = text.split('\n## ');
  return [...chapter.matchAll(/^```(sh|console)\n(.*?)^```$/gms)].flatMap(([, language, block = '']) => {
    const lines = block.split('\n').slice(0, -1);
    return language === 'sh' ? lines.map((line) => PROMPT + line) : lines;
  });
}

/** Without what is another one each time: names, times, and whether the last use is written down already. */
function withoutChance(text: string): string {
  return text
    .replaceAll(/key_[0-9A-Za-z]{19}/g, 'key_')
    .replaceAll(/tg_[0-9A-Za-z]{9}\b/g, 'tg_')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
    .replaceAll(/ +/g, ' ')
    .replaceAll(/(TIME|-) production$/gm, 'production');
}

it('prints what it shows', async () => {
  const { gateway } = await startSystem();
  const lines = await readChapter();
  const adapted = (command: string) =>
    command
      .replace('$(cat var/admin-token)', ADMIN_TOKEN)
      .replace('http://127.0.0.1:8080', gateway.public)
      .replace('"$@";', `"$@" --admin-url ${gateway.admin};`);
  const script = lines
    .filter((line) => line.startsWith(PROMPT))
    .map((line) => line.slice(PROMPT.length))
    .map((command) => `cat <<'END'\n${PROMPT}${command}\nEND\n${adapted(command)}\n`);

  const shell = spawn('bash', ['-euc', `exec 2>&1\n${script.join('')}`], {
    cwd: ROOT,
    env: { ...process.env, ...CHILD_ENVIRONMENT },
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
