import test from 'ava';

import { type Json, startDialectClients } from '../../support/simulated-dialects.ts';

const BODY = { messages: [{ role: 'user', content: 'hello there' }] };

test('faults are set, listed and removed at runtime: for all calls, for a model and for a key', async (t) => {
  const { simulator, askOpenAi, askAnthropic } = await startDialectClients(t);
  const sendCommand = async (method: string, body?: Json): Promise<unknown> => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await fetch(`${simulator.url}/faults`, { method, ...init });
    t.is(response.status, 200);
    return response.json();
  };
  const send = async (model: string, key: string): Promise<number> =>
    (await askOpenAi({ ...BODY, model }, { key })).status;

  await sendCommand('POST', { words: 'fail-500' });
  t.is(await send('gpt-sim', 'sk-a'), 500);
  t.is((await askAnthropic(BODY)).status, 500);
  await sendCommand('POST', { words: 'fail-502', model: 'gpt-sim' });
  await sendCommand('POST', { words: 'fail-503', key: 'sk-b' });
  t.is(await send('gpt-sim', 'sk-a'), 502);
  t.is(await send('gpt-sim', 'sk-b'), 503);
  t.is(await send('gpt-other', 'sk-a'), 500);
  t.is(await send('gpt-sim+fail-504', 'sk-b'), 504);
  t.deepEqual(await sendCommand('GET'), {
    all: { status: 500 },
    models: { 'gpt-sim': { status: 502 } },
    keys: { 'sk-b': { status: 503 } },
  });
  await sendCommand('POST', { words: '', model: 'gpt-sim' });
  t.is(await send('gpt-sim', 'sk-a'), 500);
  t.deepEqual(await sendCommand('DELETE'), { all: {}, models: {}, keys: {} });
  t.is(await send('gpt-sim', 'sk-b'), 200);
});

test('setFaults accepts the same settings for a model and for a key', async (t) => {
  const { simulator, askOpenAi } = await startDialectClients(t);
  simulator.setFaults({ status: 502 }, { model: 'gpt-sim' });
  t.is((await askOpenAi(BODY)).status, 502);
  simulator.setFaults({}, { model: 'gpt-sim' });
  t.is((await askOpenAi(BODY)).status, 200);
});

test('an invalid fault command changes nothing and reports why', async (t) => {
  const { simulator, askOpenAi } = await startDialectClients(t);
  const bad: readonly [unknown, RegExp][] = [
    [{}, /words/],
    [{ words: 'fial-500' }, /fial-500/],
    [{ words: 'fail' }, /its number is missing/],
    [{ words: 'fail-500', route: 'x' }, /route/],
    [{ words: 'fail-500', model: 5 }, /model/],
    [{ words: 'fail-500', model: 'x', key: 'y' }, /not both/],
    ['fail-500', /words/],
  ];
  for (const [body, words] of bad) {
    const response = await fetch(`${simulator.url}/faults`, { method: 'POST', body: JSON.stringify(body) });
    t.is(response.status, 400);
    t.regex(await response.text(), words);
  }
  t.is((await askOpenAi(BODY)).status, 200);
});

test('a web page in a browser can neither set nor remove faults', async (t) => {
  const { simulator, askOpenAi } = await startDialectClients(t);
  for (const origin of ['https://example.com', 'null', simulator.url]) {
    for (const method of ['POST', 'DELETE']) {
      const body = JSON.stringify({ words: 'fail-500' });
      const response = await fetch(`${simulator.url}/faults`, { method, body, headers: { origin } });
      t.is(response.status, 403);
    }
  }
  t.is((await askOpenAi(BODY)).status, 200);
});
