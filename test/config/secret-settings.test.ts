/** What the schema's marks promise of each secret: it can come from a file, and the hash of the configuration leaves it out. */
import { expect, test } from 'vitest';
import { SECRET_MEMBERS, SETTINGS, type SettingSchema } from '../../src/config/json-schema.ts';

function sectionsIn({ properties = {}, items, additionalProperties }: SettingSchema): Record<string, SettingSchema>[] {
  const inner = [...Object.values(properties), items, additionalProperties || undefined];
  return [properties, ...inner.flatMap((each) => (each === undefined ? [] : sectionsIn(each)))];
}

test('each secret setting has a setting for a file beside it, which says what the hash leaves out', () => {
  const secrets = sectionsIn(SETTINGS).flatMap((section) =>
    Object.entries(section)
      // URLs are shown and hashed without their credentials.
      .filter(([, { isSecret = false, typeInWords }]) => isSecret && typeInWords !== 'URL')
      .map(([name]) => ({ name, file: section[`${name}_file`] })),
  );
  expect(secrets.map(({ name }) => name)).toContain('authorization');
  for (const { file } of secrets) {
    expect(file?.typeInWords).toBe('file');
    expect(SECRET_MEMBERS).toContain(file?.secretMember);
  }
});

test('each setting that names a file ends with _file', () => {
  const named = sectionsIn(SETTINGS).flatMap((section) =>
    Object.entries(section).flatMap(([name, { typeInWords }]) => (typeInWords === 'file' ? [name] : [])),
  );
  expect(named).toContain('signing_key_file');
  for (const name of named) expect(name).toMatch(/_file$/);
});
