import test from 'ava';

import { makePng } from '../../../../scripts/vendor-simulator/tiny-png.ts';
import {
  digText,
  digList,
  type Json,
  readJson,
  startDialectClients,
} from '../../../support/simulated-dialects.ts';

const HELLO = { role: 'user', parts: [{ text: 'hello there' }] };
const SCHEMA = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] };
const CALL = { functionCall: { name: 'look', args: { at: 'x' } } };
const RESPONSE = { functionResponse: { name: 'look', response: { output: 'sunny' } } };

const withConfig = (generationConfig: Json): Json => ({ contents: [HELLO], generationConfig });
const withSchema = (parameters: Json): Json => ({
  contents: [HELLO],
  tools: [{ functionDeclarations: [{ name: 'look', parameters }] }],
});
const withModelTurn = (calls: readonly Json[], ...answers: readonly Json[]): Json => ({
  contents: [
    HELLO,
    { role: 'model', parts: calls },
    ...answers.map((part) => ({ role: 'user', parts: [part] })),
  ],
});

/** What is wrong with the request, the model, the request, and the vendor's error message. */
const rejectedRequests: readonly [string, string, Json, RegExp][] = [
  ['no contents', 'gemini-2.5', {}, /contents is not specified/],
  [
    'an unknown field',
    'gemini-2.5',
    { contents: [HELLO], messages: [] },
    /Unknown name "messages": Cannot find field/,
  ],
  [
    'an unknown nested field',
    'gemini-2.5',
    withConfig({ max_tokens: 1 }),
    /"max_tokens" at 'generation_config'/,
  ],
  [
    'a field of another type',
    'gemini-2.5',
    withConfig({ topK: 'many' }),
    /Invalid value at 'generation_config.top_k'/,
  ],
  [
    'an OpenAI role',
    'gemini-2.5',
    { contents: [{ ...HELLO, role: 'assistant' }] },
    /valid role: user, model/,
  ],
  ['no parts', 'gemini-2.5', { contents: [{ role: 'user', parts: [] }] }, /parts must not be empty/],
  ['an empty part', 'gemini-2.5', { contents: [{ parts: [{}] }] }, /required oneof field 'data'/],
  [
    'six stop sequences',
    'gemini-2.5',
    withConfig({ stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] }),
    /must not exceed 5/,
  ],
  ['too many candidates', 'gemini-2.5', withConfig({ candidateCount: 9 }), /range \[1, 8\]/],
  ['a temperature that is too high', 'gemini-2.5', withConfig({ temperature: 2.1 }), /range \[0\.0, 2\.0\]/],
  [
    'a thinking level for an old model',
    'gemini-2.5',
    withConfig({ thinkingConfig: { thinkingLevel: 'low' } }),
    /level is not/,
  ],
  [
    'a thinking budget for a new one',
    'gemini-3-pro',
    withConfig({ thinkingConfig: { thinkingBudget: 1 } }),
    /budget is not/,
  ],
  [
    'a thinking level and a budget',
    'gemini-3-pro',
    withConfig({ thinkingConfig: { thinkingBudget: 1, thinkingLevel: 'low' } }),
    /only one of thinking budget and thinking level/,
  ],
  [
    'additionalProperties',
    'gemini-2.5',
    withSchema({ ...SCHEMA, additionalProperties: false }),
    /"additionalProperties"/,
  ],
  [
    '$schema',
    'gemini-2.5',
    withSchema({ ...SCHEMA, $schema: 'x' }),
    /"\$schema" at 'tools\[0\]\.function_decl/,
  ],
  [
    'const',
    'gemini-2.5',
    withSchema({ type: 'object', properties: { a: { const: 1 } } }),
    /"const" at '.*properties\[0\]\.value'/,
  ],
  ['types in a list', 'gemini-2.5', withSchema({ type: ['object', 'null'] }), /cannot start list/],
  [
    'a schema without JSON output',
    'gemini-2.5',
    withConfig({ responseJsonSchema: SCHEMA }),
    /response_mime_type/,
  ],
  [
    'a name with a space',
    'gemini-2.5',
    { contents: [HELLO], tools: [{ functionDeclarations: [{ name: 'a b' }] }] },
    /function name/,
  ],
  [
    'a forced tool that is not declared',
    'gemini-2.5',
    {
      ...withSchema(SCHEMA),
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['wait'] } },
    },
    /wait is not declared/,
  ],
  [
    'a response without name',
    'gemini-2.5',
    withModelTurn([CALL], { functionResponse: { response: {} } }),
    /Name cannot be empty/,
  ],
  [
    'a response that is a string',
    'gemini-2.5',
    withModelTurn([CALL], { functionResponse: { name: 'look', response: 'sunny' } }),
    /google\.protobuf\.Struct\), "sunny"/,
  ],
  [
    'too few responses',
    'gemini-2.5',
    withModelTurn([CALL, CALL], RESPONSE),
    /number of function response parts/,
  ],
  [
    'responses in two contents',
    'gemini-2.5',
    withModelTurn([CALL, CALL], RESPONSE, RESPONSE),
    /number of function response parts/,
  ],
  [
    'a response without a call',
    'gemini-2.5',
    { contents: [{ parts: [RESPONSE] }] },
    /response turn comes immediately after/,
  ],
  [
    "a response without the call's id",
    'gemini-2.5',
    withModelTurn([{ functionCall: { ...CALL.functionCall, id: 'a' } }], RESPONSE),
    /names and ids/,
  ],
  [
    'a call without signature',
    'gemini-3-pro',
    withModelTurn([CALL], RESPONSE),
    /missing a thought_signature.*look/,
  ],
  [
    'a foreign signature',
    'gemini-3-pro',
    withModelTurn([{ ...CALL, thoughtSignature: 'QUFB' }], RESPONSE),
    /signature is not valid/,
  ],
  [
    'bytes that are not an image',
    'gemini-2.5',
    { contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: 'aGVsbG8=' } }] }] },
    /Unable to process input image/,
  ],
];

for (const [what, model, body, words] of rejectedRequests) {
  test(`rejected: ${what}`, async (t) => {
    const { askGemini } = await startDialectClients(t);
    const response = await askGemini(model, body);
    const answer = await readJson(response);
    t.is(response.status, 400);
    t.like(answer, { error: { code: 400, status: 'INVALID_ARGUMENT' } });
    t.regex(digText(answer, 'error', 'message'), words);
  });
}

test('requests that the vendor accepts are accepted', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const signed = { ...CALL, thoughtSignature: 'skip_thought_signature_validator' };
  const png = makePng(2, 2, [1, 2, 3]).toString('base64');
  const acceptedRequests: readonly [string, Json][] = [
    [
      'gemini-2.5',
      { contents: { parts: { text: 'one of each' } }, system_instruction: { parts: [{ text: 'x' }] } },
    ],
    ['gemini-2.5', { contents: [{ parts: [{ inline_data: { mime_type: 'image/png', data: png } }] }] }],
    ['gemini-2.5', withSchema({ type: 'OBJECT', properties: { at: { type: 'STRING', nullable: true } } })],
    [
      'gemini-2.5',
      {
        contents: [HELLO],
        tools: [
          {
            functionDeclarations: [
              {
                name: 'look',
                parametersJsonSchema: { $schema: 'x', ...SCHEMA, additionalProperties: false },
              },
            ],
          },
        ],
      },
    ],
    ['gemini-2.5', withConfig({ stopSequences: ['a', 'b', 'c', 'd', 'e'], seed: null })],
    ['gemini-2.5', withModelTurn([CALL], RESPONSE)],
    ['gemini-3-pro', withModelTurn([signed], RESPONSE)],
    // Of parallel calls only the first is signed, and only calls after the last user message are checked.
    [
      'gemini-3-pro',
      {
        contents: [
          ...digList(withModelTurn([CALL], RESPONSE), 'contents'),
          HELLO,
          { role: 'model', parts: [signed, CALL] },
        ],
      },
    ],
  ];
  for (const [model, body] of acceptedRequests) {
    const response = await askGemini(model, body);
    t.is(response.status, 200, await response.text());
  }
});

test('a signature must be returned unchanged, with the call for which it was issued', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const tools = [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA }] }];
  const first = await readJson(await askGemini('gemini-3-pro', { contents: [HELLO], tools }));
  const [part = {}] = digList(first, 'candidates', 0, 'content', 'parts');
  t.is(typeof part['thoughtSignature'], 'string');
  t.is((await askGemini('gemini-3-pro', { tools, ...withModelTurn([part], RESPONSE) })).status, 200);
  const changed = { ...part, functionCall: { name: 'look', args: { at: 'elsewhere' } } };
  t.is((await askGemini('gemini-3-pro', { tools, ...withModelTurn([changed], RESPONSE) })).status, 400);
});

test('all invalid fields are reported together', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const answer = await readJson(
    await askGemini('gemini-2.5', { messages: [], max_tokens: 1, contents: [HELLO] }),
  );
  t.is(digList(answer, 'error', 'details', 0, 'fieldViolations').length, 2);
});

test('a call without a key is rejected', async (t) => {
  const { askGemini } = await startDialectClients(t);
  const response = await askGemini('gemini-2.5', { contents: [HELLO] }, { key: null });
  t.is(response.status, 403);
  t.like(await readJson(response), { error: { status: 'PERMISSION_DENIED' } });
});
