/** Copies a text. Returns whether that worked; if not, the text is selected where it is shown, if it is in a field. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The clipboard exists only on https and loopback addresses.
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'visually-hidden';
  // Inside an open dialog, because everything outside it cannot get the focus.
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  const focused = document.activeElement;
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
