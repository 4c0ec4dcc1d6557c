/** Actions on customers. */
import { html } from 'htm/preact';
import type { ConfigDocument, CustomerDocument } from '../../api/admin/responses.ts';
import { call } from '../client/api.ts';
import { badge } from '../client/components.ts';
import type { FormDescription, FormInput } from '../client/form-dialog.ts';
import { count, entryOf, limitText, nextEnds } from '../client/format.ts';
import { NAME } from '../client/key-fields.ts';
import { at, navigate } from '../client/router.ts';

const LIMIT = {
  name: 'requests_per_hour',
  label: 'Requests per hour',
  hint: "Empty: the plan's limit.",
  kind: 'number',
} as const;

type Plans = ConfigDocument['plans'];

/** The fields of customers whose plan may have a period. */
function periodFields(plans: Plans, { period_requests = null, period_anchor = null }: Partial<CustomerDocument> = {}) {
  const areUsed = period_requests !== null || period_anchor !== null;
  if (!areUsed && !Object.values(plans).some(({ period }) => period)) return [];
  const hint = 'Day of the month and hour in UTC, such as 2030-01-31T10:00:00Z. Empty: as in the calendar.';
  return [
    {
      name: 'period_requests',
      label: 'Requests per day or month',
      hint: "Empty: the plan's limit.",
      kind: 'number',
      current: period_requests,
    },
    { name: 'period_anchor', label: 'Its days or months begin', hint, current: period_anchor },
  ] as const;
}

const NOTIFY_URL = {
  name: 'notify_url',
  label: 'URL for its notices',
  hint: 'https. Notices are sent once the customer has a secret: tollgate customers notify-secret.',
  input: { type: 'url', maxlength: 2048 },
};

export function newCustomer(plans: Plans): FormDescription {
  const names = Object.keys(plans);
  const hint = 'Letters, digits and . _ : @ -. It cannot be changed.';
  return {
    title: 'New customer',
    label: 'Create',
    fields: [
      { name: 'id', isMember: false, label: 'Id', hint, input: { required: true, autofocus: true, maxlength: 128 } },
      { ...NAME, hint: 'For people. Optional.' },
      { name: 'plan', label: 'Plan', options: names.map((plan) => [plan]), preset: names[0] },
      { ...LIMIT, hint: "Empty: the plan's limit. A custom plan needs a number." },
      ...periodFields(plans),
      NOTIFY_URL,
    ],
    command: (texts) => ['customers', 'create', texts.id || 'CUSTOMER'],
    submit: async ({ texts: { id = '' }, change }) => {
      await call('POST /admin/v1/customers', { body: { id, ...change } });
      navigate(at('customers', id));
    },
    faultOf: { conflict: 'id' },
    said: 'Created. It needs a key.',
  };
}

/** `used`: in the last hour; undefined if unknown. */
export function changeCustomer(customer: CustomerDocument, plans: Plans, used: number | undefined): FormDescription {
  const { id, name, current_plan, requests_per_hour, limit, limit_source, notify_url } = customer;
  const isOverridden = limit_source === 'override';
  const note = ({ texts: { plan = '', requests_per_hour: own } }: FormInput) => {
    const newLimit = own ? Number(own) : (entryOf(plans, plan)?.requests_per_hour ?? null);
    const after = isOverridden ? limit : newLimit;
    const isRefused = used !== undefined && typeof after === 'number' && used >= after;
    return html`<p aria-live="polite">
        Limit: <strong>${limitText(limit)}</strong> → <strong>${limitText(after)}</strong> per hour${used !== undefined && `, ${count(used)} used`}
        ${after === 'custom' && html` ${badge('bad', 'this plan needs a number')}`}
        ${isRefused && html` ${badge('warn', 'the next request is refused')}`}
      </p>
      ${isOverridden && html`<p>An entry in <code>overrides</code> of the config file sets the limit. Plan and number take effect once it is removed.</p>`}`;
  };
  const unknown = current_plan === null ? [[customer.plan, `${customer.plan} (not configured)`] as const] : [];
  const options = [...unknown, ...Object.keys(plans).map((plan) => [plan] as const)];
  return {
    title: `Change ${id}`,
    label: 'Save',
    fields: [
      { name: 'plan', label: 'Plan', options, current: current_plan ?? customer.plan },
      { ...LIMIT, current: requests_per_hour, input: { autofocus: true } },
      ...periodFields(plans, customer),
      { ...NAME, current: name },
      { ...NOTIFY_URL, current: notify_url },
    ],
    note,
    command: () => ['customers', 'update', id],
    submit: ({ change }) => call('PATCH /admin/v1/customers/:id', { id, body: change }),
    said: `Changed ${id}. It takes effect within a second.`,
  };
}

export const UNTIL = { name: 'until', label: 'Until', kind: 'time', presets: nextEnds } as const;

/** A limit that ends by itself. */
export function limitForATime({ id, temporary_limit: present }: CustomerDocument): FormDescription {
  const said = `Changed ${id}. It takes effect within a second.`;
  return {
    title: `Limit ${id} for a time`,
    label: 'Save',
    text: 'When it ends, the limit that it covers applies again. An entry in overrides of the config file precedes it.',
    fields: [
      {
        ...LIMIT,
        name: 'temporary_limit',
        hint: '',
        current: present?.requests_per_hour,
        input: { required: true, autofocus: true },
      },
      { ...UNTIL, hint: 'In your time zone.', current: present?.until },
    ],
    command: () => ['customers', 'update', id],
    submit: ({ change: { temporary_limit: number, until = present?.until } }) => {
      const limit = { requests_per_hour: number ?? present?.requests_per_hour, until: until ?? undefined };
      return call('PATCH /admin/v1/customers/:id', { id, body: { temporary_limit: limit } });
    },
    other: present !== null && {
      title: `End the limit of ${id} now?`,
      label: 'End it now',
      text: 'The limit that it covers applies again within a second.',
      command: () => ['customers', 'update', id, { temporary_limit: null }],
      submit: () => call('PATCH /admin/v1/customers/:id', { id, body: { temporary_limit: null } }),
      said,
    },
    said,
  };
}

export function suspendCustomer({ id, suspended }: CustomerDocument): FormDescription {
  const label = suspended ? 'Reactivate' : 'Suspend';
  return {
    title: `${label} ${id}?`,
    label,
    isDangerous: !suspended,
    text: suspended
      ? 'Its keys work again within a second.'
      : 'All its requests get 403 within a second, with any of its keys. Keys and usage are kept.',
    fields: suspended ? [] : [{ ...UNTIL, hint: 'In your time zone. Empty: until you reactivate it.' }],
    command: () => ['customers', 'update', id, suspended ? '--no-suspended' : '--suspended'],
    submit: ({ change }) =>
      call('PATCH /admin/v1/customers/:id', {
        id,
        body: { suspended: !suspended, suspended_until: change.until ?? undefined },
      }),
    said: suspended ? `Reactivated ${id}.` : `Suspended ${id}.`,
  };
}

export function resetUsage({ id, period }: CustomerDocument): FormDescription {
  const options = [['hour', 'The last hour'], ...(period ? [['period', `This ${period.per}`] as const] : [])] as const;
  return {
    title: `Reset the usage of ${id}?`,
    label: 'Reset usage',
    text: 'Sets the usage to 0, so that the whole limit is available again. The history stays.',
    fields: period ? [{ name: 'window', label: 'Usage of', options, current: 'hour' }] : [],
    command: () => ['usage', 'reset', id],
    submit: ({ texts: { window } }) =>
      call('DELETE /admin/v1/customers/:id/usage', { id, query: { window: window === 'period' ? window : 'hour' } }),
    said: `Reset the usage of ${id}.`,
  };
}

/** Opens the portal as the customer sees it. Scopes only read, so that its developers' changes remain theirs. */
export function openPortal({ id }: CustomerDocument): FormDescription {
  return {
    title: `Open as ${id}`,
    label: 'Open in a new tab',
    text: 'Shows the portal as this customer sees it: its usage and its keys, without changing them. The audit records it.',
    command: () => ['portal', 'link', id, '--scope', 'usage:read', 'keys:read'],
    submit: async () => {
      const body = { scopes: ['usage:read', 'keys:read'], user: 'console' };
      const { url } = await call('POST /admin/v1/customers/:id/portal-sessions', { id, body });
      window.open(url, '_blank', 'noopener');
    },
    said: 'The portal is open in a new tab.',
  };
}

export function deleteCustomer({ id }: CustomerDocument): FormDescription {
  const input = { required: true, autocomplete: 'off', pattern: id.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') };
  return {
    title: `Delete ${id}?`,
    label: 'Delete',
    isDangerous: true,
    text: 'Deletes the customer with its keys, its usage and its history. This cannot be undone.',
    fields: [{ name: 'typed', isMember: false, label: `Type ${id} to confirm`, input }],
    note: ({ texts }) => texts.typed === id && html`<p class="quiet">The button deletes it now.</p>`,
    command: () => ['customers', 'delete', id],
    submit: () => call('DELETE /admin/v1/customers/:id', { id }).then(() => navigate(at('customers'))),
    said: `Deleted ${id}.`,
  };
}
