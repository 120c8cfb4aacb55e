import { createConfig, lintFromString } from '@redocly/openapi-core';
import test from 'ava';
import { createRouter } from '../../api/app.ts';
import type { Services } from '../../api/services.ts';
import { isErrorCode } from '../../shared/contract/errors.ts';
import type { Description } from '../../shared/contract/openapi/description.ts';
import {
  listOperations,
  prepareCall,
  schemesOf,
  send,
  type Call,
  type Described,
} from '../support/described-calls.ts';
import { DescriptionChecker } from '../support/description-checker.ts';
import { crowdNetwork, provoke } from '../support/provoke-errors.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { createWebUser } from '../support/web-client.ts';

let stack: TestStack;
let text: string;
let description: Description;
let checker: DescriptionChecker;

test.before(async () => {
  stack = await startStack({ env: { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on' } });
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
  const routes = createRouter({ web: {}, calls: {} } as Services).stack.flatMap(({ path, methods }) =>
    methods
      .filter((method) => method !== 'HEAD')
      .map((method) => `${method} ${String(path).replaceAll(/[:*](\w+)/g, '{$1}')}`),
  );
  t.deepEqual(
    routes.toSorted(),
    listOperations(description)
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      .toSorted(),
  );
});

test('the server of the description is the address of this one', (t) => {
  t.deepEqual(description.servers, [{ url: stack.url }]);
});

/** Their examples name what a fresh server does not have. */
const notThereYet: ReadonlySet<string> = new Set([
  'getFile',
  'redeemCode',
  'getJob',
  'cancelJob',
  'streamJobEvents',
]);

test('every operation answers its examples as the description says, with what its security names alone', async (t) => {
  for (const described of listOperations(description)) {
    const { operationId, requestBody } = described.operation;
    const bodies = Object.values(requestBody?.content[json]?.examples ?? { none: { value: undefined } });
    for (const { value } of bodies) {
      const body = value === undefined ? {} : { body: JSON.stringify(value) };
      // Operations may change what they are called for: each call has an account, or a user, of its own.
      const answer = await send(stack.url, described, { ...body, ...(await prepareCall(stack, described)) });
      t.is(answer.ok, !notThereYet.has(operationId), `${operationId}: ${answer.status}`);
      t.deepEqual(await checker.findFaults(described.path, described.method, answer), [], operationId);
    }
  }
});

const bearer = (apiKey: string) => ({ authorization: `Bearer ${apiKey}` });

interface WrongCall extends Call {
  readonly title: string;
}

/** A right key and a right session. */
interface Strangers {
  readonly key: Record<string, string>;
  readonly session: Record<string, string>;
}

/** Calls that an operation must refuse. */
function listWrongCalls(described: Described, base: Call, otherwise: Strangers): WrongCall[] {
  const { parameters = [], requestBody } = described.operation;
  const names = parameters.filter((one) => one.in === 'path').map((one) => one.name);
  const checked = parameters.filter(
    ({ in: place, schema }) =>
      place === 'query' && (schema.enum ?? schema.format ?? schema.minimum) !== undefined,
  );
  const withBody: Call[] = [
    { ...base, body: '{"broken' },
    { ...base, body: '[]' },
    { ...base, body: '{}', contentType: 'text/plain' },
    { ...base, body: '{}', contentType: 'application/json; charset=latin1' },
  ];
  const made = 'x'.repeat(86);
  const strangers: WrongCall[] = [
    { title: 'no key', headers: {} },
    {
      title: 'a wrong key',
      headers: { authorization: `Bearer mg-${made.slice(0, 43)}`, cookie: `mg_session=${made}` },
    },
  ];
  const opensOther = schemesOf(described).includes('apiKey') ? otherwise.session : otherwise.key;
  strangers.push({ title: 'what opens the other kind of operation', headers: opensOther });
  return [
    ...(schemesOf(described).length === 0 ? [] : strangers.map((call) => ({ ...base, ...call }))),
    ...(requestBody === undefined ? [] : withBody.map((call) => ({ ...call, title: String(call.body) }))),
    ...names.map((name) => ({ ...base, title: `no such ${name}`, path: { ...base.path, [name]: 'none' } })),
    ...checked.map(({ name }) => ({ ...base, title: `a wrong ${name}`, query: `${name}=no+such` })),
  ];
}

test('every operation refuses wrong calls as the description says, sessions where a key is needed and keys where a session is', async (t) => {
  const { client } = await createWebUser(stack, 'stranger@example.com');
  const { apiKey } = await stack.createAccount();
  const session = { cookie: client.cookieHeader, 'x-csrf-token': client.csrfToken! };
  const otherwise = { key: bearer(apiKey), session };
  for (const described of listOperations(description)) {
    for (const call of listWrongCalls(described, await prepareCall(stack, described), otherwise)) {
      const answer = await send(stack.url, described, call);
      const title = `${described.operation.operationId} with ${call.title}`;
      t.true(answer.status >= 400 && answer.status < 500, `${title}: ${answer.status}`);
      t.deepEqual(await checker.findFaults(described.path, described.method, answer), [], title);
    }
  }
});

/** They take a store that fails, a captcha, a sender that dawdles, or 129 calls at once. */
const cannotBeProvoked = [
  'internal_error',
  'service_unavailable',
  'queue_full',
  'key_generation_failed',
  'captcha_failed',
  'rate_limit_exceeded',
  'deadline_exceeded',
];

const codesOf = ({ operation }: Described): string[] =>
  Object.values(operation.responses)
    .flatMap(({ content }) => Object.keys(content[json]?.examples ?? {}))
    .filter((code) => isErrorCode(code) && !cannotBeProvoked.includes(code));

test('each error that an operation of the account area names is met, and answered as the description says', async (t) => {
  const crowd = await crowdNetwork(stack);
  for (const described of listOperations(description)) {
    if (!described.operation.tags.some((tag) => tag.startsWith('Web '))) continue;
    const call = await prepareCall(stack, described);
    for (const code of codesOf(described)) {
      const title = `${described.operation.operationId}: ${code}`;
      const example = described.operation.requestBody?.content[json]?.examples?.['usual']?.value;
      const answer = await send(stack.url, described, {
        ...(example === undefined ? {} : { body: JSON.stringify(example) }),
        ...(await provoke(stack, described, { code, crowd, call })),
      });
      t.is(((await answer.clone().json()) as { error: { code: string } }).error.code, code, title);
      t.deepEqual(await checker.findFaults(described.path, described.method, answer), [], title);
    }
  }
});

test('what limits and money refuse is described', async (t) => {
  const poor = await stack.createAccount({ balance: '0' });
  const slow = await stack.createAccount({ rpm: 1 });
  const described = listOperations(description).filter(
    ({ operation }) => operation.responses['402'] !== undefined,
  );
  t.true(described.length >= 3);
  for (const one of described) {
    const body = JSON.stringify(one.operation.requestBody?.content[json]?.examples?.['usual']?.value);
    const refused = await send(stack.url, one, { headers: bearer(poor.apiKey), body });
    t.is(refused.status, 402);
    t.deepEqual(await checker.findFaults(one.path, one.method, refused), []);
    await (await send(stack.url, one, { headers: bearer(slow.apiKey), body })).text();
    const limited = await send(stack.url, one, { headers: bearer(slow.apiKey), body });
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
