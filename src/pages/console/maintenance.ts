/** Maintenance on the overview: one bar while it is in force, and the forms that begin, change and end it. */
import { html } from 'htm/preact';
import type { MaintenanceDocument } from '../../api/admin/responses.ts';
import { call } from '../client/api.ts';
import { time } from '../client/components.ts';
import { FormButton, type FormDescription } from '../client/form-dialog.ts';
import { localInputTime } from '../client/format.ts';
import { UNTIL } from './customer-forms.ts';

const MODES = [
  ['down', 'Refuse all requests'],
  ['read_only', 'Let GET, HEAD and OPTIONS pass'],
] as const;

export function maintenanceBar(maintenance: MaintenanceDocument) {
  const { mode, routes, until, message, since } = maintenance;
  if (mode === 'off') return null;
  const what = mode === 'down' ? 'All requests' : 'Requests other than GET, HEAD and OPTIONS';
  return html`<div class="maintenance" role="status">
    <p><strong>In maintenance since ${time(since ?? '')}${until && html`, until ${time(until)}`}.</strong>${' '}
      ${what} to ${routes?.join(', ') ?? 'every route'} get 503.${message && html` Clients read: “${message}”`}</p>
    <span class="actions">
      <${FormButton} label="Change" form=${() => setForm(maintenance)} />
      <${FormButton} label="End maintenance" form=${() => END} isPrimary />
    </span>
  </div>`;
}

/** Without a maintenance in force. */
export const beginMaintenance = (maintenance: MaintenanceDocument) =>
  html`<p><${FormButton} label="Begin maintenance" form=${() => setForm(maintenance)} /></p>`;

function setForm({ mode, routes, until, message }: MaintenanceDocument): FormDescription {
  const isOff = mode === 'off';
  return {
    title: isOff ? 'Begin maintenance?' : 'Change the maintenance',
    label: isOff ? 'Begin maintenance' : 'Save',
    isDangerous: isOff,
    text: 'All gateways refuse these requests with 503 within a second. Requests in progress complete, and none that is refused is counted.',
    fields: [
      { name: 'mode', label: 'What', options: MODES, preset: isOff ? 'down' : mode, isMember: false },
      {
        name: 'routes',
        option: 'route',
        label: 'Only these routes',
        hint: 'Paths as in the configuration, separated by spaces. Empty: every route.',
        kind: 'list',
        preset: routes?.join(' '),
      },
      {
        ...UNTIL,
        hint: 'In your time zone. Empty: until you end it.',
        preset: localInputTime(until ?? ''),
      },
      {
        name: 'message',
        label: 'Message for clients',
        hint: 'At most 500 characters. Empty: default words.',
        preset: message ?? undefined,
        input: { maxlength: 500 },
      },
    ],
    command: ({ mode }) => ['maintenance', mode === 'read_only' ? 'read-only' : 'down'],
    submit: ({ texts: { mode }, change }) => call('PUT /admin/v1/maintenance', { body: { mode, ...change } }),
    said: 'The maintenance is set.',
  };
}

const END: FormDescription = {
  title: 'End the maintenance?',
  label: 'End maintenance',
  text: 'All gateways forward requests again within a second.',
  command: () => ['maintenance', 'off'],
  submit: () => call('PUT /admin/v1/maintenance', { body: { mode: 'off' } }),
  said: 'The maintenance has ended.',
};
