import test from 'ava';
import type { ChatRequest } from '../../../../shared/contract/chat.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import {
  createChatJob,
  prepareChat,
  type ChatPreparationDeps,
} from '../../../../shared/preparing/chat/prepare-chat.ts';
import type { PrepareOptions } from '../../../../shared/preparing/preparation.ts';
import { CountedTexts } from '../../../../shared/preparing/tokens/counted-texts.ts';
import { validateBody } from '../../../../shared/preparing/validate-body.ts';
import { createModelCatalog } from '../../../support/model-catalog.ts';
import { toDataUri } from '../../../support/make-pdf.ts';

const catalog = createModelCatalog(`
upstreams:
  open: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
  google: { kind: gemini, apiKeys: [k] }
models:
  - { id: chat, type: chat, context: 8192, max_output_tokens: 1000, pricing: { prompt: 1, completion: 2 }, routes: [{ upstream: open }] }
  - { id: reader, type: chat, context: 8192, supported_file_types: [txt], pricing: { prompt: 1, completion: 2 }, routes: [{ upstream: open }] }
  - { id: thinker, type: chat, context: 8192, pricing: { prompt: 1, completion: 2 }, routes: [{ upstream: google }] }
`);
const { signal } = new AbortController();
const request = { requestId: 'r' } as AdmittedRequest;

const noFiles: ChatPreparationDeps['documents'] = {
  read: () => Promise.reject(new Error('there is no file')),
};
const noReasoning: ChatPreparationDeps['reasoning'] = { load: () => Promise.resolve(new Map()) };

const prepare = (
  more: object,
  options: Partial<PrepareOptions> = {},
  deps: Partial<ChatPreparationDeps> = {},
) =>
  prepareChat(
    { catalog, documents: noFiles, reasoning: noReasoning, countedTexts: new CountedTexts(), ...deps },
    validateBody('createChatCompletion', {
      model: 'chat',
      messages: [{ role: 'user', content: 'Say hello.' }],
      ...more,
    }),
    { accountId: 'account', signal, ...options },
  );

test('the job of a chat has the checked body, bounded by the reserved tokens of all its choices', async (t) => {
  const { model, estimate, job } = await prepare({ n: 2, max_tokens: 100, unknown_field: 1, user: 'u' });
  t.is(model.id, 'chat');
  t.is(estimate.model, model);
  t.is(estimate.requestedUnits, 200);
  t.is(estimate.user, 'u');
  const { body, ...others } = createChatJob(job, request, 50);
  t.deepEqual(others, {
    v: 1,
    kind: 'chat',
    request,
    mostPromptTokens: job.mostPromptTokens,
    reservedTokens: 50,
  });
  t.is(body.max_tokens, 25);
  t.false('unknown_field' in body);
  t.is(createChatJob(job, request, 200).body.max_tokens, 100);
});

test('a chat with the older form of tools has a job that says so', async (t) => {
  const functions = [{ name: 'add', parameters: { type: 'object', properties: {} } }];
  const { job } = await prepare({ functions });
  t.is(createChatJob(job, request, 10).wantsFunctionCall, true);
  t.deepEqual(job.body.tools, [{ type: 'function', function: functions[0] }] as ChatRequest['tools']);
});

test('stored reasoning is loaded for the account, and is part of the job', async (t) => {
  const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{}' } };
  const messages = [
    { role: 'user', content: 'Add.' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: '3' },
  ];
  const accounts: string[] = [];
  const value = { kind: 'gemini', signature: 's' };
  const reasoning: ChatPreparationDeps['reasoning'] = {
    async load(accountId, hashes) {
      accounts.push(accountId);
      return new Map(hashes.map((hash) => [hash, value]));
    },
  };
  const { job } = await prepare({ model: 'thinker', messages }, {}, { reasoning });
  t.deepEqual(accounts, ['account']);
  const loaded = [{ messageIndex: 1, toolCallId: 'call_1', value }];
  t.deepEqual(createChatJob(job, request, 10).reasoning, loaded);
});

test('files are read after the account was checked, and their errors name the field', async (t) => {
  const file = { filename: 'a.txt', file_data: toDataUri(Buffer.from('text'), 'text/plain') };
  const chat = { model: 'reader', messages: [{ role: 'user', content: [{ type: 'file', file }] }] };
  const steps: string[] = [];
  const documents: ChatPreparationDeps['documents'] = {
    async read(accountId) {
      steps.push(`read for ${accountId}`);
      return { fault: 'too_long' };
    },
  };
  const checkEarly: PrepareOptions['checkEarly'] = async ({ id }, readsFiles) => {
    steps.push(`check ${id} ${readsFiles}`);
  };
  const error = await t.throwsAsync(prepare(chat, { checkEarly }, { documents }), { instanceOf: AppError });
  t.is(error.code, 'context_length_exceeded');
  t.is(error.param, 'messages.0.content.0.file.file_data');
  t.deepEqual(steps, ['check reader true', 'read for account']);
});

test('a chat that is rejected without its account needs no check of it', async (t) => {
  const checkEarly: PrepareOptions['checkEarly'] = () => Promise.reject(new Error('checked'));
  const rejected: [object, string][] = [
    [{ model: 'chatt' }, 'model_not_found'],
    [{ tool_choice: { type: 'custom' } }, 'validation_failed'],
    [{ messages: [{ role: 'user', content: '' }] }, 'validation_failed'],
  ];
  for (const [body, code] of rejected) await t.throwsAsync(prepare(body, { checkEarly }), { code });
  await t.throwsAsync(prepare({ messages: [{ role: 'user', content: 'word '.repeat(9_000) }] }), {
    code: 'context_length_exceeded',
  });
});
