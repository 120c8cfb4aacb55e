import test from 'ava';
import OpenAI from 'openai';
import { makePng } from '../../scripts/vendor-simulator/tiny-png.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { makePdf } from '../support/make-pdf.ts';
import { findRow } from '../support/observe.ts';
import type { TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** One request, every vendor: the official package asks models that live behind each of the three dialects. */

const price = 'pricing: { prompt: 13.37, completion: 42.42, input_cache_read: 3.31 }';
const model = (id: string, upstream: string, vendorModel: string, more = ''): string => `
  - id: ${id}
    type: chat
    context: 100000
    max_output_tokens: 20000
    reasoning_effort: { default: none, choices: [none, low, high] }
    supported_file_types: [pdf]
    ${price}
    routes: [{ upstream: ${upstream}, model: "${vendorModel}"${more} }]`;

const models = {
  openai: 'openai-reasoner',
  'anthropic by budget': 'claude-budget',
  'anthropic by effort': 'claude-effort',
  'the newest of anthropic': 'claude-newest',
  'gemini by budget': 'gemini-budget',
  'gemini by level': 'gemini-level',
} as const;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  open: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-open-key-123], drops: [max_tokens, temperature] }
  claude: { kind: anthropic, baseUrl: "${vendorUrl}", apiKeys: [sk-ant-key-123] }
  google: { kind: gemini, baseUrl: "${vendorUrl}", apiKeys: [google-key-123] }
models:${[
  model('openai-reasoner', 'open', 'gpt-sim'),
  model('claude-budget', 'claude', 'claude-sonnet-4-5+parallel'),
  model('claude-effort', 'claude', 'claude-opus-4-6+parallel'),
  model('claude-newest', 'claude', 'claude-new+parallel'),
  model('gemini-budget', 'google', 'gemini-2.5-flash+parallel'),
  model('gemini-level', 'google', 'gemini-3-pro+parallel'),
  model('broken-claude', 'claude', 'claude-sonnet-4-5+cut-6'),
  model('broken-gemini', 'google', 'gemini-2.5-flash+cut-3'),
].join('')}
  - { id: painter, type: chat, context: 8192, output_modalities: [text, image], ${price}, routes: [{ upstream: google, model: gemini-2.5-flash-image }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, pricing: { in_cost_per_million: 3 }, routes: [{ upstream: google, model: gemini-embedding-001 }] }
  - { id: pictures, type: image, context: 8192, size: [512x512, 1024x1024], max_image_count: 4, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: google, model: gemini-2.5-flash-image }] }
  - { id: mixed, type: chat, context: 100000, max_output_tokens: 20000, ${price}, routes: [{ upstream: claude, model: claude-sonnet-4-5 }, { upstream: google, model: gemini-2.5-flash }] }
`;

let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack } = started);
});

async function createClient(): Promise<{ client: OpenAI; id: string }> {
  const { apiKey, id } = await stack.createAccount({ balance: '1000' });
  return { client: new OpenAI({ apiKey, baseURL: `${stack.url}/v1`, maxRetries: 0 }), id };
}

const picture = `data:image/png;base64,${makePng(8, 8, [200, 10, 10]).toString('base64')}`;
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: 'system', content: 'You answer in one word.' },
  { role: 'developer', content: 'And politely.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is the weather where this was taken?' },
      { type: 'image_url', image_url: { url: picture } },
    ],
  },
];

interface GatewayUsage extends OpenAI.CompletionUsage {
  readonly cost_request: number;
}

/** Tokens and money of one answer, as they must be the same whichever vendor gave it. */
function account({ usage }: OpenAI.ChatCompletion): object {
  const { prompt_tokens, completion_tokens, completion_tokens_details, cost_request } = usage as GatewayUsage;
  return {
    prompt_tokens,
    completion_tokens,
    reasoning: completion_tokens_details?.reasoning_tokens ?? null,
    cost_request,
  };
}

test('one body with tools, a picture, a system prompt and reasoning is answered alike, and costs the same, through every dialect', async (t) => {
  const { client } = await createClient();
  const accounts: object[] = [];
  for (const [name, id] of Object.entries(models)) {
    for (const stream of [false, true]) {
      const body = {
        model: id,
        messages,
        reasoning_effort: 'high' as const,
        max_completion_tokens: 8_000,
        temperature: 0.7,
        tools: [
          {
            type: 'function' as const,
            function: { name: 'get_weather', description: 'Weather', parameters, strict: true },
          },
        ],
      };
      const answer = stream
        ? await client.chat.completions
            .stream({ ...body, stream_options: { include_usage: true } })
            .finalChatCompletion()
        : await client.chat.completions.create(body);
      const [choice] = answer.choices;
      t.is(choice?.finish_reason, 'tool_calls', name);
      t.is(choice?.message.content, null, name);
      const [call, ...others] = choice!.message.tool_calls ?? [];
      t.is(others.length, 0, name);
      t.true(call?.type === 'function' && call.function.name === 'get_weather', name);
      t.deepEqual(JSON.parse((call as { function: { arguments: string } }).function.arguments), {
        city: 'simulated',
        days: 1,
      });
      t.truthy((choice as { native_finish_reason?: string }).native_finish_reason, name);
      const said = choice!.message as { reasoning_content?: string };
      // The package's own stream helper keeps the last piece of a field that it does not know.
      t.regex(said.reasoning_content ?? '', stream ? /./ : /The user asked/, `${name}: what it thought`);
      accounts.push(account(answer));
    }
  }
  for (const one of accounts) t.deepEqual(one, accounts[0]!);
  t.true((accounts[0] as { reasoning: number }).reasoning > 0);
});

for (const [name, id] of Object.entries(models)) {
  for (const stream of [false, true]) {
    test(`the official tool runner goes through several rounds with ${name}${stream ? ', streamed' : ''}`, async (t) => {
      const { client } = await createClient();
      const asked: unknown[] = [];
      const tool = {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          description: 'Weather of a city',
          parameters,
          parse: JSON.parse as (text: string) => { city: string },
          function: (args: object): string => {
            asked.push(args);
            return JSON.stringify({ celsius: 21 });
          },
        },
      };
      const body = {
        model: id,
        messages,
        reasoning_effort: 'high' as const,
        max_completion_tokens: 8_000,
        tools: [tool],
      };
      const final = stream
        ? await client.chat.completions.runTools({ ...body, stream: true }).finalContent()
        : await client.chat.completions.runTools(body).finalContent();
      t.regex(final ?? '', /^You said: What is the weather/);
      t.deepEqual(asked, [{ city: 'simulated', days: 1 }]);
    });
  }
}

test('calls in parallel are answered together, and the conversation goes on with the thought behind them', async (t) => {
  const { client } = await createClient();
  const tools = ['first', 'second'].map((name) => ({
    type: 'function' as const,
    function: { name, parameters },
  }));
  for (const id of [models['anthropic by budget'], models['gemini by level'], models['gemini by budget']]) {
    const body = { model: id, reasoning_effort: 'high' as const, max_completion_tokens: 8_000, tools };
    const first = await client.chat.completions.create({ ...body, messages });
    const calls = first.choices[0]!.message.tool_calls!;
    t.is(calls.length, 2, id);
    t.is(new Set(calls.map((call) => call.id)).size, 2);
    // As a client sends it that knows OpenAI's fields and no others.
    const said: OpenAI.ChatCompletionMessageParam = {
      role: 'assistant',
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: (call as OpenAI.ChatCompletionMessageFunctionToolCall).function,
      })),
    };
    const results = calls.map((call) => ({ role: 'tool' as const, tool_call_id: call.id, content: 'sunny' }));
    const second = await client.chat.completions.create({
      ...body,
      messages: [...messages, said, ...results],
    });
    t.is(second.choices[0]?.finish_reason, 'stop', id);
    // The vendor would have refused thinking without its signature; and it did think again.
    t.true((second.usage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0, id);

    const single = await client.chat.completions.create({ ...body, messages, parallel_tool_calls: false });
    t.is(single.choices[0]?.message.tool_calls?.length, 1, id);
  }
});

test('where a thought was forgotten the conversation goes on without it', async (t) => {
  const { client, id: accountId } = await createClient();
  const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }];
  for (const id of [models['anthropic by budget'], models['gemini by level']]) {
    const body = { model: id, reasoning_effort: 'high' as const, max_completion_tokens: 8_000, tools };
    const first = await client.chat.completions.create({ ...body, messages });
    const remembered = await findKeys(stack.redis, `mg:*:reasoning:${accountId}:*`);
    t.true(remembered.length > 0, id);
    await Promise.all(remembered.map((key) => stack.redis.del(key)));
    const [call] = first.choices[0]!.message.tool_calls!;
    const { function: made } = call as OpenAI.ChatCompletionMessageFunctionToolCall;
    const second = await client.chat.completions.create({
      ...body,
      messages: [
        ...messages,
        { role: 'assistant', tool_calls: [{ id: call!.id, type: 'function', function: made }] },
        { role: 'tool', tool_call_id: call!.id, content: 'sunny' },
      ],
    });
    t.is(second.choices[0]?.finish_reason, 'stop', id);
  }
});

test('a search tells its sources in the text for who wants links, and nowhere for who does not, through every dialect', async (t) => {
  const { client } = await createClient();
  for (const id of [models.openai, models['anthropic by budget'], models['gemini by budget']]) {
    const ask = async (search: boolean | string, stream: boolean): Promise<OpenAI.ChatCompletion> => {
      const body = {
        model: id,
        messages: [{ role: 'user' as const, content: 'news' }],
        web_search: search,
        max_completion_tokens: 2_000,
      } as OpenAI.ChatCompletionCreateParamsNonStreaming;
      return stream
        ? await client.chat.completions
            .stream({ ...body, stream_options: { include_usage: true } } as never)
            .finalChatCompletion()
        : await client.chat.completions.create(body);
    };
    for (const stream of [false, true]) {
      for (const search of [true, 'links']) {
        const { message } = (await ask(search, stream)).choices[0]!;
        t.regex(
          message.content ?? '',
          /^You said: news[\s\S]*\n\nSources:\n1\. \[.+\]\(https:\/\//,
          `${id} ${search}`,
        );
        t.true((message.annotations?.length ?? 0) > 0, id);
      }
      const { message } = (await ask('no-links', stream)).choices[0]!;
      t.false(/https?:/.test(JSON.stringify(message)), `${id}: ${JSON.stringify(message)}`);
      const { message: plain } = (await ask(false, stream)).choices[0]!;
      t.false(/Sources/.test(plain.content ?? ''), id);
    }
  }
});

test('a JSON schema is followed, and several answers are given where the vendor can', async (t) => {
  const { client } = await createClient();
  const format = {
    type: 'json_schema' as const,
    json_schema: { name: 'weather', schema: parameters, strict: true },
  };
  for (const id of Object.values(models)) {
    const answer = await client.chat.completions.create({ model: id, messages, response_format: format });
    t.deepEqual(JSON.parse(answer.choices[0]!.message.content ?? ''), { city: 'simulated', days: 1 }, id);
  }
  for (const id of [models.openai, models['gemini by budget']]) {
    const answer = await client.chat.completions.create({ model: id, messages, n: 2 });
    t.is(answer.choices.length, 2);
  }
  // Of the routes of a model only those are asked that can.
  for (let i = 0; i < 8; i++) {
    const answer = await client.chat.completions.create({ model: 'mixed', messages, n: 2 });
    t.is(answer.choices.length, 2);
  }
  const refused = await t.throwsAsync(
    client.chat.completions.create({ model: models['anthropic by budget'], messages, n: 2 }),
    { instanceOf: OpenAI.APIError },
  );
  t.is(refused?.status, 422);
});

test('a PDF goes to every vendor that reads it', async (t) => {
  const { client } = await createClient();
  const file = {
    filename: 'a.pdf',
    file_data: `data:application/pdf;base64,${makePdf(['Read me.']).toString('base64')}`,
  };
  for (const id of Object.values(models)) {
    const answer = await client.chat.completions.create({
      model: id,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'read' },
            { type: 'file', file },
          ],
        },
      ],
    });
    t.regex(answer.choices[0]!.message.content ?? '', /read/, id);
  }
});

test('a picture that is none is refused before it reaches a vendor that takes bytes', async (t) => {
  const { client } = await createClient();
  const broken = `data:image/png;base64,${Buffer.from('\x89PNG\r\n\x1a\nnot a picture', 'latin1').toString('base64')}`;
  for (const id of [models['anthropic by budget'], models['gemini by level']]) {
    const error = await t.throwsAsync(
      client.chat.completions.create({
        model: id,
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: broken } }] }],
      }),
      { instanceOf: OpenAI.APIError },
    );
    t.is(error?.status, 422, id);
  }
  for (const url of [
    'https://127.0.0.1/a.png',
    'https://[::1]/a.png',
    'https://169.254.169.254/latest/meta-data',
    'https://2130706433/',
  ]) {
    const error = await t.throwsAsync(
      client.chat.completions.create({
        model: models['gemini by level'],
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      }),
      { instanceOf: OpenAI.APIError },
    );
    t.is(error?.status, 422, url);
    t.is(error?.code, 'unsafe_url', url);
  }
});

test('a chat model that draws sends its pictures, streamed or whole, and is paid by its tokens', async (t) => {
  const { client } = await createClient();
  type Drawn = { images?: { image_url: { url: string } }[] };
  const body = { model: 'painter', messages: [{ role: 'user' as const, content: 'a cat' }] };
  const whole = await client.chat.completions.create({ ...body, size: '1024x1024' } as typeof body);
  const streamed = await client.chat.completions.stream(body).finalChatCompletion();
  for (const { choices } of [whole, streamed]) {
    const { images } = choices[0]!.message as Drawn;
    t.regex(images?.[0]?.image_url.url ?? '', /^data:image\/png;base64,iVBOR/);
  }
});

test('Gemini’s embeddings and pictures come as any other vendor’s', async (t) => {
  const { client, id } = await createClient();
  const inputs = Array.from({ length: 130 }, (_, i) => `text ${i}`);
  const { data, usage } = await client.embeddings.create({
    model: 'vectors',
    input: inputs,
    dimensions: 256,
  });
  t.is(data.length, 130);
  t.true(data.every(({ embedding }) => embedding.length === 256));
  t.true(usage.prompt_tokens > 0);
  const { data: images } = await client.images.generate({
    model: 'pictures',
    prompt: 'a cat',
    n: 3,
    size: '512x512',
  });
  t.is(images?.length, 3);
  t.regex(images![0]!.b64_json ?? '', /^iVBOR/);
  t.truthy(id);
});

test('what a broken stream had generated is paid for, and its prompt as the vendor counted it', async (t) => {
  for (const id of ['broken-claude', 'broken-gemini']) {
    const { client } = await createClient();
    const { data: stream, response } = await client.chat.completions
      .create({
        model: id,
        messages: [{ role: 'user', content: 'one two three four five six seven' }],
        stream: true,
      })
      .withResponse();
    let said = '';
    await t.throwsAsync(async () => {
      for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? '';
    });
    t.true(said.length > 0, id);
    const row = await findRow(stack, response.headers.get('x-request-id')!);
    t.like(row, { success: false, responseCode: 502 }, id);
    t.true(row.completionTokens > 0, id);
    // Seven words, as this vendor counts; our own count would add what every message costs.
    t.is(row.promptTokens, 7, id);
    t.true(row.costNano > 0n, id);
  }
});
