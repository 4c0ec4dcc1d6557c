/** Actions on customers. */
import { html } from 'htm/preact';
import type { CustomerDocument } from '../../admin-api/responses.ts';
import { call } from './api.ts';
import { Badge, Field } from './components.ts';
import { ActionDialog, useForm } from './dialog.ts';
import { entryOf } from './entry-of.ts';
import { count, tollgate } from './format.ts';
import { at, navigate } from './router.ts';

interface OfCustomer {
  readonly customer: CustomerDocument;
  readonly onClose: () => void;
}

const pathOf = (id: string) => `/admin/v1/customers/${encodeURIComponent(id)}`;

export function NewCustomerDialog({ plans, onClose }: { plans: readonly string[]; onClose: () => void }) {
  const { values, bind } = useForm({ id: '', name: '', plan: plans[0] ?? '', limit: '' });
  const { id, name, plan, limit } = values;
  const submit = async () => {
    const json = { id, plan, ...(name && { name }), ...(limit && { requests_per_hour: Number(limit) }) };
    await call('POST', '/admin/v1/customers', { json });
    navigate(at('customers', id));
    return `Created ${id}. It needs a key.`;
  };
  const command = tollgate(
    'customers',
    'create',
    id || 'CUSTOMER',
    '--plan',
    plan,
    ...(name ? ['--name', name] : []),
    ...(limit ? ['--requests-per-hour', limit] : []),
  );
  return html`<${ActionDialog} title="New customer" label="Create" command=${command} submit=${submit} onClose=${onClose}>
    <${Field} label="Id" hint="Letters, digits and . _ : @ -. It cannot be changed."><input required autofocus maxlength="128" ...${bind('id')} /><//>
    <${Field} label="Name" hint="For people. Optional."><input maxlength="200" ...${bind('name')} /><//>
    <${Field} label="Plan"><${PlanOptions} plans=${plans} bound=${bind('plan')} /><//>
    <${Field} label="Requests per hour" hint="Empty: the plan's limit. A custom plan needs a number."><input type="number" min="1" step="1" ...${bind('limit')} /><//>
  <//>`;
}

function PlanOptions({ plans, bound }: { plans: readonly string[]; bound: { value: string | undefined } }) {
  return html`<select ...${bound}>${plans.map((plan) => html`<option value=${plan} selected=${plan === bound.value}>${plan}</option>`)}</select>`;
}

interface ChangeLimitProps extends OfCustomer {
  readonly plans: Readonly<Record<string, { readonly requests_per_hour: number | 'custom' }>>;
  /** In the last hour; undefined if unknown. */
  readonly used: number | undefined;
}

export function ChangeLimitDialog({ customer, plans, used, onClose }: ChangeLimitProps) {
  const { id, requests_per_hour: own } = customer;
  const plan = customer.current_plan ?? customer.plan;
  const { values, bind } = useForm({ plan, limit: own === null ? '' : String(own), name: customer.name ?? '' });
  const newOwn = values.limit === '' ? null : Number(values.limit);
  const change = {
    ...(values.plan !== plan && { plan: values.plan }),
    ...(newOwn !== own && { requests_per_hour: newOwn }),
    ...(values.name !== (customer.name ?? '') && { name: values.name || null }),
  };
  const after =
    customer.limit_source === 'override'
      ? customer.limit
      : (newOwn ?? entryOf(plans, values.plan)?.requests_per_hour ?? null);
  const submit = async () => {
    await call('PATCH', pathOf(id), { json: change });
    return `Changed ${id}. It takes effect within a second.`;
  };
  const command = tollgate(
    'customers',
    'update',
    id,
    ...('plan' in change ? ['--plan', change.plan] : []),
    ...('requests_per_hour' in change
      ? newOwn === null
        ? ['--no-requests-per-hour']
        : ['--requests-per-hour', newOwn]
      : []),
    ...('name' in change ? (values.name ? ['--name', values.name] : ['--no-name']) : []),
  );
  const show = (limit: number | 'custom' | null) => (typeof limit === 'number' ? count(limit) : 'none');
  const isRefused = used !== undefined && typeof after === 'number' && used >= after;
  return html`<${ActionDialog} title=${`Change ${id}`} label="Save" command=${command} submit=${submit} onClose=${onClose}>
    <${Field} label="Plan"><${PlanOptions} plans=${Object.keys(plans)} bound=${bind('plan')} /><//>
    <${Field} label="Requests per hour" hint="Empty: the plan's limit."><input type="number" min="1" step="1" autofocus ...${bind('limit')} /><//>
    <${Field} label="Name"><input maxlength="200" ...${bind('name')} /><//>
    <p class="before-after" aria-live="polite">
      Limit: <strong>${show(customer.limit)}</strong> → <strong>${show(after)}</strong> per hour${used !== undefined && `, ${count(used)} used`}
      ${after === 'custom' && html` <${Badge} tone="bad">this plan needs a number<//>`}
      ${isRefused && html` <${Badge} tone="warn">the next request is refused<//>`}
    </p>
    ${customer.limit_source === 'override' && html`<p>An entry in <code>overrides</code> of the config file sets the limit. Plan and number take effect once it is removed.</p>`}
  <//>`;
}

export function SuspendDialog({ customer, onClose }: OfCustomer) {
  const { id, suspended } = customer;
  const submit = async () => {
    await call('PATCH', pathOf(id), { json: { suspended: !suspended } });
    return suspended ? `Reactivated ${id}.` : `Suspended ${id}.`;
  };
  return html`<${ActionDialog} title=${suspended ? `Reactivate ${id}?` : `Suspend ${id}?`} label=${suspended ? 'Reactivate' : 'Suspend'}
    isDangerous=${!suspended} submit=${submit} onClose=${onClose} command=${tollgate('customers', 'update', id, suspended ? '--no-suspended' : '--suspended')}>
    <p>${suspended ? 'Its keys work again within a second.' : 'All its requests get 403 within a second, with any of its keys. Keys and usage are kept.'}</p>
  <//>`;
}

export function ResetUsageDialog({ customer: { id }, onClose }: OfCustomer) {
  const submit = async () => {
    await call('DELETE', `${pathOf(id)}/usage`);
    return `Reset the usage of ${id}.`;
  };
  return html`<${ActionDialog} title=${`Reset the usage of ${id}?`} label="Reset usage" submit=${submit} onClose=${onClose}
    command=${tollgate('usage', 'reset', id)}>
    <p>Sets the usage of the last hour to 0, so that the whole limit is available again. The history stays.</p>
  <//>`;
}

export function DeleteCustomerDialog({ customer: { id }, onClose }: OfCustomer) {
  const { values, bind } = useForm({ typed: '' });
  const submit = async () => {
    await call('DELETE', pathOf(id));
    navigate(at('customers'));
    return `Deleted ${id}.`;
  };
  return html`<${ActionDialog} title=${`Delete ${id}?`} label="Delete" isDangerous submit=${submit} onClose=${onClose}
    command=${tollgate('customers', 'delete', id)}>
    <p>Deletes the customer with its keys, its usage and its history. This cannot be undone.</p>
    <${Field} label=${`Type ${id} to confirm`}><input required autocomplete="off" pattern=${id.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')} ...${bind('typed')} /><//>
    ${values.typed === id && html`<p class="quiet">The button deletes it now.</p>`}
  <//>`;
}
