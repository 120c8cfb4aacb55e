import { once } from 'node:events';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import test, { type ExecutionContext } from 'ava';
import OpenAI from 'openai';

import {
  startVendorSimulator,
  type VendorSimulator,
  type VendorSimulatorOptions,
} from '../../../scripts/vendor-simulator/simulator.ts';
import { parseCatalog } from '../../../shared/catalog/parse-catalog.ts';
import { deriveVector } from '../../../scripts/vendor-simulator/vectors.ts';

async function startSimulator(
  t: ExecutionContext,
  options: VendorSimulatorOptions = {},
): Promise<{
  simulator: VendorSimulator;
  client: OpenAI;
  readonly post: (path: string, body: object) => Promise<Response>;
}> {
  const simulator = await startVendorSimulator(options);
  t.teardown(() => simulator.close());
  return {
    simulator,
    client: new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: 'sk-sim', maxRetries: 0 }),
    post: (path, body) =>
      fetch(`${simulator.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
  };
}

const MESSAGES = [{ role: 'user' as const, content: 'hello there' }];

test('the official SDK chats, streamed and not, and its stream helper accumulates the whole message', async (t) => {
  const { client } = await startSimulator(t);
  const whole = await client.chat.completions.create({ model: 'gpt-sim', messages: MESSAGES });
  t.is(whole.choices[0]?.message.content, 'You said: hello there');
  t.like(whole.usage, { prompt_tokens: 2, completion_tokens: 4, total_tokens: 6 });
  const stream = client.chat.completions.stream({ model: 'gpt-sim', messages: MESSAGES });
  const added = await stream.finalChatCompletion();
  t.is(added.choices[0]?.message.content, 'You said: hello there');
  t.is(added.choices[0]?.finish_reason, 'stop');
});

test("the official SDK's tool runner calls a tool and then gets an answer", async (t) => {
  const { client } = await startSimulator(t);
  const toolArguments: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model: 'gpt-sim',
    messages: MESSAGES,
    stream: true,
    tools: [
      {
        type: 'function',
        function: {
          name: 'look',
          description: 'Looks.',
          parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
          parse: JSON.parse as (text: string) => object,
          function: (given: object) => {
            toolArguments.push(given);
            return 'seen';
          },
        },
      },
    ],
  });
  t.is(await runner.finalContent(), 'You said: hello there');
  t.deepEqual(toolArguments, [{ at: 'simulated' }]);
});

test('the answer follows the requested schema', async (t) => {
  const { client } = await startSimulator(t);
  const schema = {
    type: 'object',
    properties: { n: { type: 'integer' }, tags: { type: 'array', items: { enum: ['a', 'b'] } } },
    required: ['n', 'tags'],
  };
  const answer = await client.chat.completions.create({
    model: 'gpt-sim',
    messages: MESSAGES,
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
  });
  t.deepEqual(JSON.parse(answer.choices[0]?.message.content ?? ''), { n: 1, tags: ['a'] });
});

test('any model reasons if an effort is requested', async (t) => {
  const { client } = await startSimulator(t);
  const request = async (reasoning_effort: 'none' | 'low'): Promise<number | undefined> => {
    const answer = await client.chat.completions.create({
      model: 'gpt-sim',
      messages: MESSAGES,
      reasoning_effort,
    });
    return answer.usage?.completion_tokens_details?.reasoning_tokens;
  };
  t.is(await request('low'), 8);
  t.is(await request('none'), 0);
});

test('a search cites its sources in the message, and in one delta of a stream', async (t) => {
  const { client } = await startSimulator(t);
  const request = { model: 'gpt-sim', messages: MESSAGES, web_search_options: {} };
  const whole = await client.chat.completions.create(request);
  const message = whole.choices[0]?.message;
  t.is(message?.content, 'You said: hello there');
  const [first] = message?.annotations ?? [];
  const { start_index = 0, end_index = 0, url = '' } = first?.url_citation ?? {};
  t.is(message?.content?.slice(start_index, end_index), ' said: hello there');
  t.regex(url, /^https:/);
  const deltas: unknown[] = [];
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    deltas.push(chunk.choices[0]?.delta);
  }
  t.is(deltas.filter((delta) => 'annotations' in (delta as object)).length, 1);
  t.like(deltas.at(-2), { annotations: message?.annotations });
});

test('audio and files are accepted, and add no tokens to the usage', async (t) => {
  const { client } = await startSimulator(t);
  const answer = await client.chat.completions.create({
    model: 'gpt-sim',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
          { type: 'text', text: 'hello there' },
          { type: 'file', file: { filename: 'x.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } },
        ],
      },
    ],
  });
  t.is(answer.choices[0]?.message.content, 'You said: hello there');
  t.is(answer.usage?.prompt_tokens, 2);
});

test('embeddings depend only on their text, have norm one and the requested length', async (t) => {
  const { client } = await startSimulator(t);
  for (const encoding_format of [undefined, 'float', 'base64'] as const) {
    const answer = await client.embeddings.create({
      model: 'emb',
      input: ['a', 'b', 'a'],
      dimensions: 32,
      ...(encoding_format === undefined ? {} : { encoding_format }),
    });
    t.is(answer.usage.prompt_tokens, 3);
    if (encoding_format !== 'base64') {
      const [first, second, third] = answer.data.map((item) => Float32Array.from(item.embedding));
      t.deepEqual(first, deriveVector('a', 32));
      t.deepEqual(first, third);
      t.notDeepEqual(first, second);
    }
  }
  const length = Math.sqrt(deriveVector('a', 1536).reduce((sum, value) => sum + value * value, 0));
  t.true(Math.abs(length - 1) < 1e-5);
});

test('with fast vectors, all inputs have the same vector, for few inputs and for many', async (t) => {
  const { client } = await startSimulator(t, { vectors: 'fast', logCapacity: 0 });
  for (const count of [1, 40, 3, 2048]) {
    const input = Array.from({ length: count }, (_, index) => `text ${index}`);
    const answer = await client.embeddings.create({ model: 'emb', input, dimensions: 4 });
    t.is(answer.data.length, count);
    t.deepEqual(
      answer.data.map((item) => item.index),
      input.map((_, index) => index),
    );
    t.deepEqual(answer.data[0]?.embedding, answer.data[count - 1]?.embedding);
    t.is(answer.usage.prompt_tokens, 2 * count);
  }
});

test('models are listed and described, and any model name is accepted', async (t) => {
  const { client } = await startSimulator(t);
  const ids: string[] = [];
  for await (const model of client.models.list()) {
    ids.push(model.id);
  }
  t.true(ids.includes('gpt-sim'));
  t.is((await client.models.retrieve('any/name')).id, 'any/name');
});

test('faults come from options, setFaults, header, model and key, and later sources override earlier ones', async (t) => {
  const { simulator, post } = await startSimulator(t, { faults: { status: 500 } });
  const request = async (model: string, headers: Record<string, string> = {}): Promise<number> => {
    const response = await fetch(`${simulator.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model, messages: MESSAGES }),
    });
    await response.arrayBuffer();
    return response.status;
  };
  t.is(await request('gpt-sim'), 500);
  simulator.setFaults({ status: 502 });
  t.is(await request('gpt-sim'), 502);
  simulator.setFaults({});
  t.is(await request('gpt-sim'), 200);
  t.is(await request('gpt-sim', { 'x-simulate': 'fail-503' }), 503);
  t.is(await request('gpt-sim+fail-504', { 'x-simulate': 'fail-503' }), 504);
  t.is(await request('gpt-sim+fail-504', { authorization: 'Bearer sk+fail-529' }), 529);
  t.is(await request('gpt-sim', { authorization: 'Bearer exhausted' }), 429);
  const rejection = await post('/v1/chat/completions', { model: 'fail-429+retry-1500', messages: MESSAGES });
  t.is(rejection.headers.get('retry-after-ms'), '1500');
  t.is(rejection.headers.get('retry-after'), '2');
  t.like(await rejection.json(), { error: { message: 'This failure was requested.' } });
});

test('a flaky vendor fails the configured fraction of calls, and the same calls in every run', async (t) => {
  const run = async (): Promise<number[]> => {
    const { post } = await startSimulator(t);
    const statuses: number[] = [];
    for (let call = 0; call < 200; call += 1) {
      const response = await post('/v1/chat/completions', { model: 'gpt-sim+flaky-50', messages: MESSAGES });
      await response.arrayBuffer();
      statuses.push(response.status);
    }
    return statuses;
  };
  const [first, second] = await Promise.all([run(), run()]);
  t.deepEqual(first, second);
  const failed = first.filter((status) => status === 500).length;
  t.true(failed > 70 && failed < 130, `${failed} of 200`);
});

test('calls above the limit wait in order, or are rejected', async (t) => {
  const input = 'a';
  const waiting = await startSimulator(t, { cost: { perCallMs: 40, maxConcurrency: 2 } });
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: 6 }, () => waiting.client.embeddings.create({ model: 'emb', input })),
  );
  const tookMs = performance.now() - startedAt;
  t.true(tookMs >= 115 && tookMs < 5000, `${tookMs} ms`);

  const refusing = await startSimulator(t, {
    cost: { perCallMs: 1_000, maxConcurrency: 1, overflow: 'reject' },
  });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 3 }, () => refusing.client.embeddings.create({ model: 'emb', input })),
  );
  t.is(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1);
  t.is(refusing.simulator.requests.counters.byStatus[429], 2);
});

test('a caller that disconnects while waiting leaves the queue', async (t) => {
  const { simulator, client } = await startSimulator(t, { cost: { perCallMs: 500, maxConcurrency: 1 } });
  const first = client.embeddings.create({ model: 'emb', input: 'a' });
  const controller = new AbortController();
  const cancelled = client.embeddings.create(
    { model: 'emb-leaving', input: 'a' },
    { signal: controller.signal },
  );
  await simulator.requests.waitFor((entry) => entry.model === 'emb-leaving');
  controller.abort();
  await t.throwsAsync(cancelled);
  const endedCall = await simulator.requests.waitFor(
    (entry) => entry.model === 'emb-leaving' && entry.isOver,
  );
  t.true(endedCall.isAborted);
  t.is(endedCall.status, null);
  await first;
  await client.embeddings.create({ model: 'emb', input: 'a' });
  t.deepEqual({ ...simulator.requests.counters.byStatus }, { 200: 2 });
});

test('invalid requests are rejected as the vendor rejects them', async (t) => {
  const { simulator, post } = await startSimulator(t);
  const bad: [string, object][] = [
    ['/v1/embeddings', { model: 'emb', input: [] }],
    ['/v1/embeddings', { model: 'emb', input: ['a', ''] }],
    ['/v1/embeddings', { model: 'emb', input: Array.from({ length: 2049 }, () => 'a') }],
    ['/v1/embeddings', { model: 'emb' }],
    ['/v1/chat/completions', { model: 'gpt-sim', messages: [] }],
    ['/v1/images/generations', { model: 'gpt-image-1', prompt: 'x', response_format: 'b64_json' }],
    ['/v1/images/generations', { model: 'dall-e-3' }],
  ];
  for (const [path, body] of bad) {
    t.is((await post(path, body)).status, 400, JSON.stringify(body).slice(0, 80));
  }
  t.is((await post('/v1/nothing', {})).status, 404);
  const broken = await fetch(`${simulator.url}/v1/embeddings`, { method: 'POST', body: '{' });
  t.is(broken.status, 400);
});

test('a model named `constructor` is counted like any other', async (t) => {
  const { simulator, client } = await startSimulator(t);
  await client.embeddings.create({ model: 'constructor', input: 'a' });
  t.is(simulator.requests.counters.byModel['constructor'], 1);
});

test('requests are counted and recorded, up to the limit, and can be cleared', async (t) => {
  const { simulator, client } = await startSimulator(t, { logCapacity: 2 });
  for (const input of ['a', 'b', 'c']) {
    await client.embeddings.create({ model: 'emb', input });
  }
  const { requests } = simulator;
  t.is(requests.counters.total, 3);
  t.is(requests.counters.byModel['emb'], 3);
  t.deepEqual(
    requests.entries.map((entry) => entry.body?.['input']),
    ['b', 'c'],
  );
  requests.clear();
  t.is(requests.counters.total, 0);
  t.is(requests.entries.length, 0);
});

test('the command listens, prints its usage and exits cleanly on both signals', async (t) => {
  const main = fileURLToPath(new URL('../../../scripts/vendor-simulator/main.js', import.meta.url));
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const child = spawn(process.execPath, [main, '--port', '0', '--faults', 'fail-503'], { stdio: 'pipe' });
    t.teardown(() => child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8');
    while (!output.includes('Ctrl-C')) {
      const [text] = (await once(child.stdout, 'data')) as [string];
      output += text;
    }
    const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(output) ?? [''];
    const response = await fetch(`${url}/v1/models`);
    t.is(response.status, 503);
    const exited = once(child, 'exit');
    child.kill(signal);
    t.deepEqual(await exited, [0, null]);
  }
});

test('if the port is in use, the error explains what to do', async (t) => {
  const main = fileURLToPath(new URL('../../../scripts/vendor-simulator/main.js', import.meta.url));
  const { port } = (await startSimulator(t)).simulator;
  const child = spawn(process.execPath, [main, '--port', String(port)], { stdio: 'pipe' });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  t.deepEqual(await once(child, 'close'), [1, null]);
  t.is(errors.trim(), `Port ${port} is in use by another program: specify a free one with --port.`);
});

test('the catalog that the command prints is valid, with two routes for a chat model and for embeddings', async (t) => {
  const main = fileURLToPath(new URL('../../../scripts/vendor-simulator/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, '--port', '9123', '--catalog'], { stdio: 'pipe' });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  t.deepEqual(await once(child, 'close'), [0, null]);
  const catalog = parseCatalog(text, { env: {}, fileName: 'catalog.yaml', today: '2026-01-01' });
  t.deepEqual(catalog.warnings, []);
  t.is(catalog.find('failover')?.routes.length, 2);
  t.is(catalog.find('vectors')?.type, 'embedding');
  t.deepEqual(
    catalog.upstreams.map(({ kind, baseUrl }) => [kind, baseUrl]),
    [
      ['openai', 'http://127.0.0.1:9123/v1'],
      ['anthropic', 'http://127.0.0.1:9123'],
      ['gemini', 'http://127.0.0.1:9123'],
    ],
  );
});

test('if an option is invalid, the command fails and names it', async (t) => {
  const main = fileURLToPath(new URL('../../../scripts/vendor-simulator/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, '--per-call-ms', 'soon'], { stdio: 'pipe' });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  t.deepEqual(await once(child, 'close'), [1, null]);
  t.regex(errors, /--per-call-ms must be a non-negative number/);
});
