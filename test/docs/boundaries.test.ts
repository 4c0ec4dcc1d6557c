import { expect, test } from 'vitest';
import { boundaryFaults, circleFaults, importsOf } from '../../scripts/boundaries.ts';

const BOUNDARIES = { base: '', store: 'base npm:ioredis', keys: 'type:store' };

function faultsOf(...statements: [file: string, target: string, isTypeOnly?: boolean][]): string[] {
  const needed = [
    { file: 'store/store.ts', target: 'base', isTypeOnly: true },
    { file: 'store/store.ts', target: 'npm:ioredis', isTypeOnly: false },
    { file: 'keys/keys.ts', target: 'store', isTypeOnly: true },
  ];
  const others = statements.map(([file, target, isTypeOnly = false]) => ({ file, target, isTypeOnly }));
  return boundaryFaults(BOUNDARIES, [...needed, ...others]);
}

test('imports that the lists allow are no faults', () => {
  expect(faultsOf(['store/other.ts', 'base'])).toEqual([]);
});

test('a folder or library that is not on the list is a fault, with the file that imports it', () => {
  expect(faultsOf(['keys/keys.ts', 'npm:express'])).toEqual(['src/keys/keys.ts imports npm:express']);
  expect(faultsOf(['base/clock.ts', 'store', true])).toEqual(['src/base/clock.ts imports a type of store']);
});

test('code is a fault where types alone are allowed', () => {
  expect(faultsOf(['keys/keys.ts', 'store'])).toEqual(['src/keys/keys.ts imports store']);
});

test('a folder without a list is a fault', () => {
  expect(faultsOf(['new/file.ts', 'base'])).toEqual(['src/new/file.ts imports base']);
});

test('the folders of a room are one with it, except a wing that has a list of its own', () => {
  expect(faultsOf(['store/redis/lists.ts', 'base'], ['store/store.ts', 'store/redis'])).toEqual([]);
  const boundaries = { 'pages/client': '', pages: 'pages/client' };
  const imports = [
    { file: 'pages/serve.ts', target: 'pages/client', isTypeOnly: false },
    { file: 'pages/client/dialog.ts', target: 'pages', isTypeOnly: false },
  ];
  expect(boundaryFaults(boundaries, imports)).toEqual(['src/pages/client/dialog.ts imports pages']);
});

test('a Lua file that a module loads is imported', () => {
  const text = "const add = script('../store/redis/add.lua');\nconst own = script('own.lua');";
  expect(importsOf('keys/keys.ts', text).map(({ imported }) => imported)).toEqual([
    'store/redis/add.lua',
    'keys/own.lua',
  ]);
});

test('an entry that no file needs is a fault, and so is one of a higher layer', () => {
  expect(boundaryFaults({ base: 'store', store: '' }, [])).toEqual([
    'base lists store of a higher layer',
    'base lists store, which no file of it imports',
  ]);
});

test('files that import each other are a fault, even if they import types alone', () => {
  const imports = [
    ['a/one.ts', 'a/two.ts'],
    ['a/two.ts', 'b/three.ts'],
    ['b/three.ts', 'a/one.ts'],
    ['b/three.ts', 'b/four.ts'],
  ].map(([file = '', imported]) => ({ file, imported, target: 'a', isTypeOnly: true }));
  const circle = 'a/one.ts → a/two.ts → b/three.ts → a/one.ts';
  expect(circleFaults(imports)).toEqual([`files import each other: ${circle}`]);
  expect(circleFaults(imports.slice(1))).toEqual([]);
});
