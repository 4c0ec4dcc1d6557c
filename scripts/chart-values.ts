/** The table of the Helm chart's values: names and defaults of values.yaml, and the comment above each as its meaning. */
import { readFileSync } from 'node:fs';
import { isMap, isScalar, parseDocument, stringify, type YAMLMap } from 'yaml';

const VALUES = new URL('../deploy/helm/tollgate/values.yaml', import.meta.url);

/** Returns rows of name, default and meaning. The members of `config` are described by the configuration reference. */
export function chartValues(): string[][] {
  const { contents } = parseDocument(readFileSync(VALUES, 'utf8'));
  if (!isMap(contents)) throw new Error('values.yaml is not a mapping');
  return rows(contents, '');
}

function rows(map: YAMLMap, prefix: string): string[][] {
  return map.items.flatMap(({ key, value }, index) => {
    if (!isScalar(key)) throw new Error('a name in values.yaml is not a scalar');
    const name = `${prefix}${key.value}`;
    // The parser gives the comment above a mapping's first member to the mapping.
    const comment = key.commentBefore ?? (index === 0 && prefix !== '' ? map.commentBefore : undefined);
    // Not what a blank line separates from the name, such as the heading of the file.
    const own = (comment ?? '').split(/\n\s*\n/).at(-1) ?? '';
    const meaning = own.trim().replace(/\s*\n\s*/g, ' ');
    const hasRows = isMap(value) && !value.flow && value.items.length > 0 && name !== 'config';
    if (hasRows) return [...(meaning ? [[`\`${name}\``, '', meaning]] : []), ...rows(value, `${name}.`)];
    const fallback = name === 'config' ? 'see values.yaml' : `\`${inOneLine(value)}\``;
    return [[`\`${name}\``, fallback, meaning]];
  });
}

function inOneLine(value: unknown): string {
  return stringify(value, { collectionStyle: 'flow', lineWidth: 0 })
    .replace(/\s*\n\s*/g, ' ')
    .trim();
}
