import test from 'ava';
import sharp from 'sharp';

import {
  dig,
  digText,
  digList,
  type Json,
  readEvents,
  readJson,
  startDialectClients,
} from '../../../support/simulated-dialects.ts';

const EVENTS = 'streamGenerateContent?alt=sse';
const ARRAY = 'streamGenerateContent';
const CONTENTS = [{ role: 'user', parts: [{ text: 'hello there' }] }];
const SCHEMA = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
const DECLARATIONS = [{ name: 'look', parametersJsonSchema: SCHEMA }, { name: 'wait' }];
const TOOLS = [{ functionDeclarations: DECLARATIONS }];
const THOUGHTS = { thinkingConfig: { thinkingBudget: -1, includeThoughts: true } };

const partsOf = (answer: Json, candidate = 0): readonly Json[] =>
  digList(answer, 'candidates', candidate, 'content', 'parts');
const textOf = (answers: readonly Json[], thought?: true): string =>
  answers
    .flatMap((answer) => partsOf(answer))
    .filter((part) => part['thought'] === thought)
    .map((part) => digText(part, 'text'))
    .join('');

const bodies: readonly [string, string, Json][] = [
  ['a text', 'gemini-2.5', { contents: CONTENTS }],
  ['thinking', 'gemini-2.5', { contents: CONTENTS, generationConfig: THOUGHTS }],
  [
    'hidden thinking',
    'gemini-3',
    { contents: CONTENTS, generationConfig: { thinkingConfig: { thinkingLevel: 'high' } } },
  ],
  ['tool calls', 'gemini-3-parallel', { contents: CONTENTS, tools: TOOLS }],
  ['search results', 'gemini-2.5', { contents: CONTENTS, tools: [{ googleSearch: {} }] }],
  ['a limited answer', 'gemini-2.5', { contents: CONTENTS, generationConfig: { maxOutputTokens: 2 } }],
  [
    'no tokens left for an answer',
    'gemini-2.5',
    { contents: CONTENTS, generationConfig: { ...THOUGHTS, maxOutputTokens: 3 } },
  ],
  [
    'an image',
    'gemini-2.5',
    { contents: CONTENTS, generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } },
  ],
  ['cached tokens', 'gemini-cached', { contents: CONTENTS }],
];

for (const [what, model, body] of bodies) {
  test(`${what}: both kinds of stream add up to the same result as a whole response`, async (t) => {
    const { askGemini } = await startDialectClients(t);
    const whole = await readJson(await askGemini(model, body));
    const events = await readEvents(await askGemini(model, body, { action: EVENTS }));
    const array = await (await askGemini(model, body, { action: ARRAY })).json();
    t.deepEqual(array, events);
    for (const thought of [undefined, true] as const) {
      t.is(textOf(events, thought), textOf([whole], thought));
    }
    const others = (answers: readonly Json[]): Json[] =>
      answers.flatMap((answer) => partsOf(answer)).filter((part) => part['text'] === undefined);
    t.deepEqual(others(events), others([whole]));
    const last = events.at(-1) ?? {};
    t.deepEqual(last['usageMetadata'], whole['usageMetadata']);
    for (const field of ['finishReason', 'groundingMetadata']) {
      t.deepEqual(dig(last, 'candidates', 0, field), dig(whole, 'candidates', 0, field));
      t.true(events.slice(0, -1).every((event) => dig(event, 'candidates', 0, field) === undefined));
    }
  });
}

test('events end in CRLF CRLF and there is no end marker', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const response = await askGemini('gemini-2.5', { contents: CONTENTS }, { action: EVENTS });
  t.is(response.headers.get('content-type'), 'text/event-stream');
  const text = await response.text();
  t.regex(text, /^(data: \{.*\}\r\n\r\n)+$/);
  t.true(text.trimEnd().endsWith('}'));
});

test('usage grows with every chunk, and the first chunk has no candidatesTokenCount', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const body = { contents: CONTENTS, generationConfig: THOUGHTS };
  const events = await readEvents(await askGemini('gemini-2.5', body, { action: EVENTS }));
  const counts = events.map((event) => dig(event, 'usageMetadata') as Json);
  t.false('candidatesTokenCount' in (counts[0] ?? {}));
  const totals = counts.map((usage) => Number(usage['totalTokenCount']));
  t.deepEqual(
    totals,
    totals.toSorted((a, b) => a - b),
  );
  t.like(counts.at(-1), {
    promptTokenCount: 2,
    candidatesTokenCount: 4,
    thoughtsTokenCount: 8,
    totalTokenCount: 14,
  });
});

test('each candidate has an index, and the usage is that of all candidates together', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const body = { contents: CONTENTS, generationConfig: { candidateCount: 3 } };
  const whole = await readJson(await askGemini('gemini-2.5', body));
  t.is(digList(whole, 'candidates').length, 3);
  t.like(whole['usageMetadata'], { promptTokenCount: 2, candidatesTokenCount: 12 });
  const events = await readEvents(await askGemini('gemini-2.5', body, { action: EVENTS }));
  const finished = events.filter((event) => dig(event, 'candidates', 0, 'finishReason') === 'STOP');
  t.deepEqual(
    finished.map((event) => dig(event, 'candidates', 0, 'index')),
    [0, 1, 2],
  );
});

test("tool calls are not split, are signed if the model requires it, and have ids only if the model's name requests them", async (t) => {
  const { askGemini } = await startDialectClients(t);
  const send = async (model: string): Promise<readonly Json[]> =>
    partsOf(await readJson(await askGemini(model, { contents: CONTENTS, tools: TOOLS })));
  const old = await send('gemini-2.5-parallel');
  t.deepEqual(old, [
    { functionCall: { name: 'look', args: { at: 'simulated' } } },
    { functionCall: { name: 'wait', args: {} } },
  ]);
  const signed = await send('gemini-3-parallel');
  t.deepEqual(
    signed.map((part) => typeof part['thoughtSignature']),
    ['string', 'undefined'],
  );
  const callsWithIds = await send('gemini-3-parallel-ids');
  t.deepEqual(
    callsWithIds.map((part) => dig(part, 'functionCall', 'id')),
    ['call_simulated_0', 'call_simulated_1'],
  );
});

test('a tool is called as the mode specifies, and not again after its response', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const send = async (
    functionCallingConfig: Json,
    contents: readonly Json[] = CONTENTS,
  ): Promise<unknown[]> => {
    const body = { contents, tools: TOOLS, toolConfig: { functionCallingConfig } };
    const answer = await readJson(await askGemini('gemini-2.5', body));
    return partsOf(answer).map((part) => dig(part, 'functionCall', 'name'));
  };
  t.deepEqual(await send({ mode: 'AUTO' }), ['look']);
  t.deepEqual(await send({ mode: 'NONE' }), [undefined]);
  t.deepEqual(await send({ mode: 'ANY', allowedFunctionNames: ['wait'] }), ['wait']);
  const answered = [
    ...CONTENTS,
    { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'sunny' } } }] },
  ];
  t.deepEqual(await send({ mode: 'AUTO' }, answered), [undefined]);
});

test('grounded segments are given in byte offsets', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const contents = [{ parts: [{ text: 'größer als groß' }] }];
  const answer = await readJson(await askGemini('gemini-2.5', { contents, tools: [{ googleSearch: {} }] }));
  const text = Buffer.from(textOf([answer]));
  const metadata = dig(answer, 'candidates', 0, 'groundingMetadata');
  const segment = dig(metadata, 'groundingSupports', 0, 'segment') as Json;
  const cut = text.subarray(Number(segment['startIndex']), Number(segment['endIndex']));
  t.is(segment['text'], cut.toString());
  t.is(cut.length, text.length - 'You'.length);
  t.is(digList(metadata, 'groundingChunks').length, 2);
  t.true(Number(dig(answer, 'usageMetadata', 'toolUsePromptTokenCount')) > 0);
});

test('an image is a PNG with the requested proportions', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const generationConfig = { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '16:9' } };
  const answer = await readJson(await askGemini('gemini-image', { contents: CONTENTS, generationConfig }));
  const [image, ...others] = partsOf(answer);
  t.deepEqual(others, []);
  const { format, width, height } = await sharp(
    Buffer.from(digText(image, 'inlineData', 'data'), 'base64'),
  ).metadata();
  t.deepEqual({ format, width, height }, { format: 'png', width: 64, height: 36 });
});

test('a blocked prompt is a 200 without candidates, and its tokens are in the usage', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const body = { contents: [{ parts: [{ text: 'please blockme now' }] }] };
  const whole = await readJson(await askGemini('gemini-2.5', body));
  t.like(whole, {
    promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
    usageMetadata: { promptTokenCount: 3 },
  });
  t.false('candidates' in whole);
  t.deepEqual(await readEvents(await askGemini('gemini-2.5', body, { action: EVENTS })), [whole]);
});

test('the answer follows the requested schema, in either format', async (t) => {
  const { askGemini } = await startDialectClients(t);
  for (const schema of [
    { responseJsonSchema: SCHEMA },
    { responseSchema: { type: 'OBJECT', properties: { at: { type: 'STRING' } }, required: ['at'] } },
  ]) {
    const generationConfig = { responseMimeType: 'application/json', ...schema };
    const answer = await readJson(await askGemini('gemini-2.5', { contents: CONTENTS, generationConfig }));
    t.deepEqual(JSON.parse(textOf([answer])), { at: 'simulated' });
  }
});

test('fault words move, repeat or remove the usage and the end of a response', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const send = async (word: string): Promise<readonly Json[]> =>
    readEvents(await askGemini(`gemini-2.5+${word}`, { contents: CONTENTS }, { action: EVENTS }));
  const countsOf = (events: readonly Json[]): unknown[] =>
    events.map((event) => dig(event, 'usageMetadata', 'candidatesTokenCount'));
  t.deepEqual(countsOf(await send('nousage')), [undefined, undefined, undefined, undefined]);
  t.deepEqual(countsOf(await send('firstusage')), [4, undefined, undefined, undefined]);
  t.deepEqual(countsOf(await send('finishusage')), [undefined, undefined, undefined, 4]);
  t.deepEqual(countsOf(await send('everyusage')), [4, 4, 4, 4]);

  const finishes = (events: readonly Json[]): number =>
    events.filter((event) => dig(event, 'candidates', 0, 'finishReason') !== undefined).length;
  for (const word of ['nofinish', 'noend']) {
    const events = await send(word);
    t.is(finishes(events), 0);
    t.is(textOf(events), 'You said: hello there');
  }
  const twice = await send('duplicates');
  t.is(finishes(twice), 2);
  t.is(textOf(twice), 'You said: hello there');
  const open = await askGemini('gemini-2.5+nomark', { contents: CONTENTS }, { action: ARRAY });
  t.false((await open.text()).endsWith(']'));
});
