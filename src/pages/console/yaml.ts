/** Writes a JSON value as YAML. */
export function yamlOf(value: unknown, indent = ''): string {
  if (Array.isArray(value)) {
    return value
      .map((item) => `${indent}- ${isNested(item) ? yamlOf(item, `${indent}  `).trimStart() : scalar(item)}`)
      .join('\n');
  }
  return Object.entries(value as object)
    .map(
      ([name, member]) =>
        `${indent}${scalar(name)}:${isNested(member) ? `\n${yamlOf(member, `${indent}  `)}` : ` ${scalar(member)}`}`,
    )
    .join('\n');
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** Quotes what YAML would read as another type or as syntax. A variable of the config file must not be in quotes. */
function scalar(value: unknown): string {
  const isPlain =
    typeof value === 'string' &&
    /^[A-Za-z_/.$(][\w/.:@${}() -]*$/.test(value) &&
    !/: |[: ]$|^(?:true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}
