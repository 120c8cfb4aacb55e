import { createConfig, lintFromString } from '@redocly/openapi-core';
import test from 'ava';
import { createRouter } from '../../api/app.ts';
import type { Services } from '../../api/services.ts';
import type { Description, OperationObject } from '../../shared/contract/openapi/description.ts';
import { DescriptionChecker } from '../support/description-checker.ts';
import { startStack, type TestStack } from '../support/stack.ts';

let stack: TestStack;
let text: string;
let description: Description;
let checker: DescriptionChecker;

test.before(async () => {
  stack = await startStack();
  text = await (await fetch(`${stack.url}/v1/openapi.json`)).text();
  description = JSON.parse(text) as Description;
  checker = new DescriptionChecker(description);
});
test.after.always(() => stack?.close());

const json = 'application/json';

// Serial, as it holds up the event loop, on which the stack runs as well.
test.serial('a linter of OpenAPI finds nothing to say against the description', async (t) => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // Health, the description and its page take nothing from a caller that could be wrong.
      'operation-4xx-response': 'off',
      // The part of an error's schema that narrows its code names no other field.
      'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: true },
    },
  });
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  t.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`),
    [],
  );
});

test('the router serves what the description names, and nothing else', (t) => {
  // Building the router opens nothing; only calls would use the services.
  const routes = createRouter({} as Services).stack.flatMap(({ path, methods }) =>
    methods
      .filter((method) => method !== 'HEAD')
      .map((method) => `${method} ${String(path).replaceAll(/[:*](\w+)/g, '{$1}')}`),
  );
  t.deepEqual(
    routes.toSorted(),
    listOperations()
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .toSorted(),
  );
});

test('the server of the description is the address of this one', (t) => {
  t.deepEqual(description.servers, [{ url: stack.url }]);
});

interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
}

function listOperations(): Described[] {
  return Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
}

interface Call {
  readonly title: string;
  readonly apiKey: string | null;
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: string;
  readonly contentType?: string;
}

async function send({ path, method, operation }: Described, call: Call): Promise<Response> {
  const { parameters = [] } = operation;
  const query = parameters
    .filter((one) => one.in === 'query' && one.example !== undefined)
    .map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = call.path?.[name] ?? parameters.find((one) => one.name === name)?.example;
    return encodeURIComponent(String(value));
  });
  return await fetch(`${stack.url}${filled}?${call.query ?? query.join('&')}`, {
    method,
    headers: {
      ...(call.apiKey === null ? {} : { authorization: `Bearer ${call.apiKey}` }),
      ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? json }),
    },
    ...(call.body === undefined ? {} : { body: call.body }),
  });
}

/** Their examples name what a fresh server does not have. */
const notThereYet: ReadonlySet<string> = new Set([
  'getFile',
  'redeemCode',
  'getJob',
  'cancelJob',
  'streamJobEvents',
]);

test('every operation answers its examples as the description says', async (t) => {
  for (const described of listOperations()) {
    const { operationId, requestBody, security } = described.operation;
    const bodies = Object.values(requestBody?.content[json]?.examples ?? { none: { value: undefined } });
    for (const { value } of bodies) {
      // Operations may change their account: each gets one of its own.
      const apiKey = security.length === 0 ? null : (await stack.createAccount()).apiKey;
      const body = value === undefined ? {} : { body: JSON.stringify(value) };
      const answer = await send(described, { title: 'its example', apiKey, ...body });
      t.is(answer.ok, !notThereYet.has(operationId), `${operationId}: ${answer.status}`);
      t.deepEqual(await checker.findFaults(described.path, described.method, answer), [], operationId);
    }
  }
});

/** Calls that an operation must refuse. */
function listWrongCalls({ operation }: Described, apiKey: string): Call[] {
  const { parameters = [], requestBody, security } = operation;
  const names = parameters.filter((one) => one.in === 'path').map((one) => one.name);
  const checked = parameters.filter(
    ({ in: place, schema }) =>
      place === 'query' && (schema.enum ?? schema.format ?? schema.minimum) !== undefined,
  );
  const withBody: Omit<Call, 'title'>[] = [
    { apiKey, body: '{"broken' },
    { apiKey, body: '[]' },
    { apiKey, body: '{}', contentType: 'text/plain' },
    { apiKey, body: '{}', contentType: 'application/json; charset=latin1' },
  ];
  return [
    ...(security.length === 0 ? [] : [{ title: 'no key', apiKey: null }]),
    ...(security.length === 0 ? [] : [{ title: 'a wrong key', apiKey: `mg-${'x'.repeat(43)}` }]),
    ...(requestBody === undefined ? [] : withBody.map((call) => ({ ...call, title: String(call.body) }))),
    ...names.map((name) => ({ title: `no such ${name}`, apiKey, path: { [name]: 'none' } })),
    ...checked.map(({ name }) => ({ title: `a wrong ${name}`, apiKey, query: `${name}=no+such` })),
  ];
}

test('every operation refuses wrong calls as the description says', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const described of listOperations()) {
    for (const call of listWrongCalls(described, apiKey)) {
      const answer = await send(described, call);
      const title = `${described.operation.operationId} with ${call.title}`;
      t.true(answer.status >= 400 && answer.status < 500, `${title}: ${answer.status}`);
      t.deepEqual(await checker.findFaults(described.path, described.method, answer), [], title);
    }
  }
});

test('what limits and money refuse is described', async (t) => {
  const poor = await stack.createAccount({ balance: '0' });
  const slow = await stack.createAccount({ rpm: 1 });
  const described = listOperations().filter(({ operation }) => operation.responses['402'] !== undefined);
  t.true(described.length >= 3);
  for (const one of described) {
    const body = JSON.stringify(one.operation.requestBody?.content[json]?.examples?.['usual']?.value);
    const refused = await send(one, { title: 'no money', apiKey: poor.apiKey, body });
    t.is(refused.status, 402);
    t.deepEqual(await checker.findFaults(one.path, one.method, refused), []);
    await (await send(one, { title: 'first', apiKey: slow.apiKey, body })).text();
    const limited = await send(one, { title: 'over the limit', apiKey: slow.apiKey, body });
    t.is(limited.status, 429);
    t.deepEqual(await checker.findFaults(one.path, one.method, limited), []);
  }
});

test('a file that is there is answered as the description says', async (t) => {
  const { apiKey } = await stack.createAccount();
  const body = { model: 'demo-svg-image', prompt: 'a lighthouse', size: '256x256', response_format: 'url' };
  const made = await stack.post('/v1/images/generations', apiKey, body);
  const { data } = (await made.json()) as { data: { url: string }[] };
  const answer = await fetch(data[0]!.url);
  t.is(answer.status, 200);
  t.deepEqual(await checker.findFaults('/files/{name}', 'get', answer), []);
});
