import test from 'ava';
import OpenAI from 'openai';
import { makePng } from '../../scripts/vendor-simulator/tiny-png.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { makePdf } from '../support/make-pdf.ts';
import { findRow } from '../support/observe.ts';
import type { TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** The official OpenAI package sends the same requests to models behind each of the three dialects. */

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
  'newest anthropic': 'claude-newest',
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

const image = `data:image/png;base64,${makePng(8, 8, [200, 10, 10]).toString('base64')}`;
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
      { type: 'image_url', image_url: { url: image } },
    ],
  },
];

interface GatewayUsage extends OpenAI.CompletionUsage {
  readonly cost_request: number;
}

/** Tokens and cost of a response, which must be the same for every vendor. */
function pickTokensAndCost({ usage }: OpenAI.ChatCompletion): object {
  const { prompt_tokens, completion_tokens, completion_tokens_details, cost_request } = usage as GatewayUsage;
  return {
    prompt_tokens,
    completion_tokens,
    reasoning: completion_tokens_details?.reasoning_tokens ?? null,
    cost_request,
  };
}

test('one body with tools, an image, a system prompt and reasoning gets the same response at the same cost through every dialect', async (t) => {
  const { client } = await createClient();
  const usages: object[] = [];
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
      const completion = stream
        ? await client.chat.completions
            .stream({ ...body, stream_options: { include_usage: true } })
            .finalChatCompletion()
        : await client.chat.completions.create(body);
      const [choice] = completion.choices;
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
      const message = choice!.message as { reasoning_content?: string };
      // The package's stream helper stores only the last piece of a field that it does not know.
      t.regex(message.reasoning_content ?? '', stream ? /./ : /The user asked/, `${name}: its reasoning`);
      usages.push(pickTokensAndCost(completion));
    }
  }
  for (const one of usages) t.deepEqual(one, usages[0]!);
  t.true((usages[0] as { reasoning: number }).reasoning > 0);
});

for (const [name, id] of Object.entries(models)) {
  for (const stream of [false, true]) {
    test(`the official tool runner completes several rounds with ${name}${stream ? ', streamed' : ''}`, async (t) => {
      const { client } = await createClient();
      const calls: unknown[] = [];
      const tool = {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          description: 'Weather of a city',
          parameters,
          parse: JSON.parse as (text: string) => { city: string },
          function: (args: object): string => {
            calls.push(args);
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
      t.deepEqual(calls, [{ city: 'simulated', days: 1 }]);
    });
  }
}

test('the results of parallel tool calls are sent together, and the conversation continues with the saved reasoning', async (t) => {
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
    // Without the reasoning, as sent by a client that only knows OpenAI's fields.
    const assistantTurn: OpenAI.ChatCompletionMessageParam = {
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
      messages: [...messages, assistantTurn, ...results],
    });
    t.is(second.choices[0]?.finish_reason, 'stop', id);
    // The vendor rejects reasoning without its signature, so the gateway sent the signature. The model reasoned again.
    t.true((second.usage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0, id);

    const single = await client.chat.completions.create({ ...body, messages, parallel_tool_calls: false });
    t.is(single.choices[0]?.message.tool_calls?.length, 1, id);
  }
});

test('if the saved reasoning has expired, the conversation continues without it', async (t) => {
  const { client, id: accountId } = await createClient();
  const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }];
  for (const id of [models['anthropic by budget'], models['gemini by level']]) {
    const body = { model: id, reasoning_effort: 'high' as const, max_completion_tokens: 8_000, tools };
    const first = await client.chat.completions.create({ ...body, messages });
    const savedKeys = await findKeys(stack.redis, `mg:*:reasoning:${accountId}:*`);
    t.true(savedKeys.length > 0, id);
    await Promise.all(savedKeys.map((key) => stack.redis.del(key)));
    const [call] = first.choices[0]!.message.tool_calls!;
    const { function: calledFunction } = call as OpenAI.ChatCompletionMessageFunctionToolCall;
    const second = await client.chat.completions.create({
      ...body,
      messages: [
        ...messages,
        { role: 'assistant', tool_calls: [{ id: call!.id, type: 'function', function: calledFunction }] },
        { role: 'tool', tool_call_id: call!.id, content: 'sunny' },
      ],
    });
    t.is(second.choices[0]?.finish_reason, 'stop', id);
  }
});

test('through every dialect, a search lists its sources in the text only if links are requested', async (t) => {
  const { client } = await createClient();
  for (const id of [models.openai, models['anthropic by budget'], models['gemini by budget']]) {
    const complete = async (search: boolean | string, stream: boolean): Promise<OpenAI.ChatCompletion> => {
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
        const { message } = (await complete(search, stream)).choices[0]!;
        t.regex(
          message.content ?? '',
          /^You said: news[\s\S]*\n\nSources:\n1\. \[.+\]\(https:\/\//,
          `${id} ${search}`,
        );
        t.true((message.annotations?.length ?? 0) > 0, id);
      }
      const { message } = (await complete('no-links', stream)).choices[0]!;
      t.false(/https?:/.test(JSON.stringify(message)), `${id}: ${JSON.stringify(message)}`);
      const { message: plain } = (await complete(false, stream)).choices[0]!;
      t.false(/Sources/.test(plain.content ?? ''), id);
    }
  }
});

test('a JSON schema is followed, and several choices are returned if the vendor supports them', async (t) => {
  const { client } = await createClient();
  const format = {
    type: 'json_schema' as const,
    json_schema: { name: 'weather', schema: parameters, strict: true },
  };
  for (const id of Object.values(models)) {
    const completion = await client.chat.completions.create({ model: id, messages, response_format: format });
    t.deepEqual(JSON.parse(completion.choices[0]!.message.content ?? ''), { city: 'simulated', days: 1 }, id);
  }
  for (const id of [models.openai, models['gemini by budget']]) {
    const completion = await client.chat.completions.create({ model: id, messages, n: 2 });
    t.is(completion.choices.length, 2);
  }
  // For several choices, only the routes that support them are called.
  for (let i = 0; i < 8; i++) {
    const completion = await client.chat.completions.create({ model: 'mixed', messages, n: 2 });
    t.is(completion.choices.length, 2);
  }
  const refused = await t.throwsAsync(
    client.chat.completions.create({ model: models['anthropic by budget'], messages, n: 2 }),
    { instanceOf: OpenAI.APIError },
  );
  t.is(refused?.status, 422);
});

test('a PDF is sent to every vendor that reads PDFs', async (t) => {
  const { client } = await createClient();
  const file = {
    filename: 'a.pdf',
    file_data: `data:application/pdf;base64,${makePdf(['Read me.']).toString('base64')}`,
  };
  for (const id of Object.values(models)) {
    const completion = await client.chat.completions.create({
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
    t.regex(completion.choices[0]!.message.content ?? '', /read/, id);
  }
});

test('for vendors that accept only image bytes, an invalid image or unsafe URL is rejected before the vendor is called', async (t) => {
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

test('a chat model that generates images returns them, streamed or not', async (t) => {
  const { client } = await createClient();
  type MessageWithImages = { images?: { image_url: { url: string } }[] };
  const body = { model: 'painter', messages: [{ role: 'user' as const, content: 'a cat' }] };
  const whole = await client.chat.completions.create({ ...body, size: '1024x1024' } as typeof body);
  const streamed = await client.chat.completions.stream(body).finalChatCompletion();
  for (const { choices } of [whole, streamed]) {
    const { images } = choices[0]!.message as MessageWithImages;
    t.regex(images?.[0]?.image_url.url ?? '', /^data:image\/png;base64,iVBOR/);
  }
});

test('Gemini’s embeddings and images have the same format as those of any other vendor', async (t) => {
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

test('if a stream breaks, its output is charged, and so are the prompt tokens reported by the vendor', async (t) => {
  for (const id of ['broken-claude', 'broken-gemini']) {
    const { client } = await createClient();
    const { data: stream, response } = await client.chat.completions
      .create({
        model: id,
        messages: [{ role: 'user', content: 'one two three four five six seven' }],
        stream: true,
      })
      .withResponse();
    let received = '';
    await t.throwsAsync(async () => {
      for await (const chunk of stream) received += chunk.choices[0]?.delta.content ?? '';
    });
    t.true(received.length > 0, id);
    const row = await findRow(stack, response.headers.get('x-request-id')!);
    t.like(row, { success: false, responseCode: 502 }, id);
    t.true(row.completionTokens > 0, id);
    // This vendor counts the seven words. Our own count would also include the overhead per message.
    t.is(row.promptTokens, 7, id);
    t.true(row.costNano > 0n, id);
  }
});
