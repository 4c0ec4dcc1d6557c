/** What the portal shows of the operator: addresses that are safe to open, and a logo that is an image. */
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { configChanges } from '../../src/config/config-changes.ts';
import { parseConfig } from '../../src/config/load.ts';
import { ConfigError } from '../../src/config/problems.ts';
import { load, MINIMAL, problemsOf, withFolder } from './support.ts';

const withPortal = (members: string) =>
  `${MINIMAL}admin: { token: a-token-of-32-characters }\nportal:\n  public_url: https://keys.example.com\n  ${members}\n`;

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>';
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452ff00', 'hex');

const HOME = 'portal.home_url: must be https://, or http:// with a loopback host';
const API = 'portal.api_url: must be http(s)://host[:port]';

describe('an address that is not safe to open or to copy is an error', () => {
  test.each([
    ['home_url: "javascript:alert(1)"', HOME],
    ['home_url: "data:text/html,<script>"', HOME],
    ['home_url: "//example.com"', HOME],
    ['home_url: "http://example.com"', HOME],
    ['home_url: "https://user:password@example.com"', HOME],
    [`home_url: "https://example.com/${'a'.repeat(1024)}"`, HOME],
    ['docs_url: "javascript:alert(1)"', 'portal.docs_url: must be http:// or https://'],
    ['api_url: "javascript:alert(1)"', API],
    ['api_url: "https://api.example.com/v1?key=1"', API],
    ['api_url: "https://user@api.example.com"', API],
    ['api_url: "unix:/run/api.sock"', API],
    [`api_url: "https://api.example.com/';id;'"`, API],
  ])('%s', async (line, problem) => {
    expect(await problemsOf(withPortal(line))).toEqual([expect.stringContaining(`gateway.yaml:6: ${problem}`)]);
  });

  test.each(['https://app.example.com/#/keys', 'http://127.0.0.1:3000/x?y=<z>', 'http://localhost'])(
    'home_url may be %s',
    async (url) => {
      expect((await load(withPortal(`home_url: "${url}"`))).portal?.homeUrl).toBe(url);
    },
  );
});

test('api_url has no slash at its end, and a warning if keys cross a network unencrypted', async () => {
  const { portal, warnings } = await load(withPortal('api_url: "http://api.example.com/base/"'));
  expect(portal?.apiUrl).toBe('http://api.example.com/base');
  expect(warnings).toEqual([
    expect.stringContaining(':6: warning: portal.api_url: is http://: keys cross the network'),
  ]);
  for (const url of ['https://api.example.com', 'http://127.0.0.1:8080']) {
    expect(await load(withPortal(`api_url: "${url}"`))).toMatchObject({ portal: { apiUrl: url }, warnings: [] });
  }
});

const parse = (folder: string, file: string) =>
  parseConfig('gateway.yaml', Buffer.from(withPortal(`logo_file: ${file}`)), {}, { folder });

/** Loads a config whose logo is a file with this content. */
async function loadLogo(content: string | Buffer) {
  let config: Awaited<ReturnType<typeof parse>> | undefined;
  await withFolder({}, async (folder) => {
    await writeFile(join(folder, 'logo'), content);
    config = await parse(folder, 'logo').catch((error: unknown) => {
      if (error instanceof ConfigError) throw new Error(error.problems.join('\n'));
      throw error;
    });
  });
  return config?.portal?.logo;
}

describe('the logo', () => {
  test.each([
    ['a PNG', PNG, 'image/png'],
    ['a PNG of 64 KiB', Buffer.concat([PNG], 65_536), 'image/png'],
    ['an SVG', SVG, 'image/svg+xml'],
    ['an SVG after a byte order mark', `\uFEFF${SVG}`, 'image/svg+xml'],
    [
      'an SVG after a declaration, comments and a document type',
      `<?xml version="1.0" encoding="UTF-8"?>\n<!-- <html> --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd" [<!ENTITY a "b">]>\n<!---->\n${SVG}`,
      'image/svg+xml',
    ],
  ])('may be %s, byte for byte', async (_, content, type) => {
    const logo = await loadLogo(content);
    expect(logo?.type).toBe(type);
    expect(Buffer.from(logo?.base64 ?? '', 'base64').equals(Buffer.from(content))).toBe(true);
  });

  const TYPE = 'must name a PNG, or an SVG in UTF-8';
  test.each([
    ['an empty file', '', TYPE],
    ['a page', '<!DOCTYPE html><html><svg xmlns="http://www.w3.org/2000/svg"/></html>', TYPE],
    ['an SVG that browsers do not draw', '<svg viewBox="0 0 1 1"/>', TYPE],
    ['an SVG in UTF-16', Buffer.from(SVG, 'utf16le'), TYPE],
    ['a JPEG', Buffer.from('ffd8ffe000104a464946', 'hex'), TYPE],
    ['many comments and no image', '<!-- --> '.repeat(7000), TYPE],
    ['65,537 bytes', Buffer.concat([PNG], 65_537), 'the file is larger than 64 KiB'],
    ['two mebibytes', Buffer.alloc(2 ** 21), 'the file cannot be read: it is larger than 1024 KiB'],
  ])('may not be %s: an error with file and line', async (_, content, problem) => {
    await expect(loadLogo(content)).rejects.toThrow(`gateway.yaml:6: portal.logo_file: ${problem}`);
  });

  test('that is missing, or a folder, is an error; that of a link is read', async () => {
    await withFolder({ 'logo.svg': SVG }, async (folder) => {
      await symlink('logo.svg', join(folder, 'link'));
      expect((await parse(folder, 'link')).portal?.logo?.type).toBe('image/svg+xml');
      for (const file of ['none.svg', '.']) {
        await expect(parse(folder, file)).rejects.toThrow('portal.logo_file: the file cannot be read');
      }
      expect((await parse(folder, '""')).portal?.logo).toBeUndefined();
    });
  });

  test('that changed is a change that a reload applies, with another hash', async () => {
    await withFolder({ logo: SVG }, async (folder) => {
      const before = await parse(folder, 'logo');
      await writeFile(join(folder, 'logo'), PNG);
      const after = await parse(folder, 'logo');
      expect(configChanges(before, after)).toMatchObject([
        { text: 'portal.logo_file: another value', takesEffect: 'reload' },
      ]);
      expect(after.hash).not.toBe(before.hash);
    });
  });
});

test('a description without a scope is warned of, and one with control characters is an error', async () => {
  const route = (members: string) => `${MINIMAL}routes: [{ path: /a, methods: [GET], ${members} }]\naliases: {}\n`;
  expect((await load(route('description: Read'))).warnings).toEqual([
    expect.stringContaining('routes[0].description: has no effect without scope'),
  ]);
  expect((await load(route('description: Read, scope: a'))).warnings).toEqual([]);
  expect(await problemsOf(route('scope: a, description: "a\\nb"'))).toEqual([
    expect.stringContaining('routes[0].description: must be 1 to 200 characters without control characters'),
  ]);
});
