// Bills customers over the admin API: gives each customer of a list of invoices an account, credits each invoice once,
// and prints what each customer has spent. It may be stopped and started again at any time, and the gateway may be
// killed meanwhile: nothing happens twice.
//   ADMIN_TOKEN=… node dist/examples/billing.js examples/invoices.jsonl
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ExampleError, runExample } from './gateway-client.ts';

type Invoice = Record<'invoice' | 'customer', string> & { readonly roubles: number };
type Spend = { readonly account: string; readonly requests: number; readonly cost: number };

const { MODEL_GATEWAY_URL: gateway = 'http://127.0.0.1:8080', ADMIN_TOKEN: token = '' } = process.env;

/** Calls the admin API until it answers. With a key, the call has its effect once, however often it is made. */
async function call<T>(method: string, path: string, content: object | null, key = ''): Promise<T> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const request = { method, headers: key === '' ? headers : { ...headers, 'idempotency-key': key } };
  const body = content === null ? null : JSON.stringify(content);
  for (let pauseMs = 250; ; pauseMs = Math.min(2 * pauseMs, 8_000)) {
    try {
      const response = await fetch(`${gateway}/v1/admin${path}`, { ...request, body });
      const answer = (await response.json()) as T & { readonly error?: { readonly message: string } };
      if (response.ok) return answer;
      if (response.status < 500 && response.status !== 429)
        throw new ExampleError(`${method} ${path}: ${answer.error?.message ?? response.statusText}`);
    } catch (error) {
      // Without an answer, or with half of one, nobody knows whether the call had its effect. It is repeated.
      if (error instanceof ExampleError) throw error;
    }
    await delay(pauseMs);
  }
}

await runExample(async () => {
  const [, , path] = process.argv;
  if (path === undefined) throw new ExampleError('Usage: npm run example -- billing <invoices.jsonl>');
  const customers = new Map<string, string>();
  for (const line of readFileSync(path, 'utf8').trim().split('\n')) {
    const { invoice, customer, roubles } = JSON.parse(line) as Invoice;
    // Only what never changes: a repeated creation must have the same fields.
    const account = { name: customer };
    const { id } = await call<{ id: string }>('POST', '/accounts', account, `customer ${customer}`);
    const credit = { amount: roubles, note: `Invoice ${invoice}` };
    await call('POST', `/accounts/${id}/credits`, credit, `invoice ${invoice}`);
    console.log(`Invoice ${invoice}: credited ${customer} (${id}) with ${roubles} RUB`);
    customers.set(id, customer);
  }
  const { data } = await call<{ data: Spend[] }>('GET', '/spend?by=account', null);
  for (const { account, requests, cost } of data)
    if (customers.has(account))
      console.log(`${customers.get(account)} has spent ${cost} RUB on ${requests} requests in 30 days`);
});
