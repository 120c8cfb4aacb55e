import test from 'ava';
import { startStack, type TestStack } from '../support/stack.ts';

/** Errors explain what to do, in both languages. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack.close());

interface NotFound {
  readonly error: { readonly message: string; readonly code: string };
  readonly detail: { readonly message_ru: string; readonly message_en: string };
}

test('a path of another API, or a wrong base URL, is a 404 that states what to use instead', async (t) => {
  for (const [method, path, advice] of [
    ['POST', '/v1/responses', /Use POST \/v1\/chat\/completions/],
    ['GET', '/v1/responses/resp_1', /Use POST \/v1\/chat\/completions/],
    ['POST', '/v1/completions', /Use POST \/v1\/chat\/completions/],
    ['POST', '/v1/messages', /Use POST \/v1\/chat\/completions/],
    ['POST', '/v1beta/models/gemini-2.5-pro:generateContent', /Use POST \/v1\/chat\/completions/],
    ['POST', '/v1/audio/transcriptions', /POST \/v1\/chat\/completions/],
    ['POST', '/v1/uploads', /as file\.file_data/],
    ['POST', '/v1/assistants', /Send all messages with each request to POST \/v1\/chat\/completions/],
    [
      'POST',
      '/v1/threads/thread_1/runs',
      /Send all messages with each request to POST \/v1\/chat\/completions/,
    ],
    ['POST', '/v1/vector_stores', /POST \/v1\/embeddings/],
    ['POST', '/v1/moderations', /not supported/],
    ['POST', '/chat/completions', /lacks \/v1\. Check the base URL, which must end in \/v1/],
    ['GET', '/models/gpt', /lacks \/v1/],
    ['POST', '/v1/v1/chat/completions', /\/v1 twice/],
    ['GET', '/nothing', /See \/docs for the available endpoints/],
  ] as const) {
    const response = await fetch(`${stack.url}${path}`, { method, headers: { accept: 'application/json' } });
    const { error, detail } = (await response.json()) as NotFound;
    t.is(response.status, 404, path);
    t.is(error.code, 'not_found', path);
    t.true(error.message.startsWith(`There is no endpoint ${method} ${path}. `), error.message);
    t.regex(error.message, advice);
    t.is(detail.message_en, error.message);
    // The specific advice follows the general text.
    t.regex(detail.message_ru, /^По этому адресу ничего нет\./);
    t.true(detail.message_ru.endsWith(error.message));
  }
});

test('the error for an unknown model states where to find the existing ones', async (t) => {
  const response = await fetch(`${stack.url}/v1/models/gpt-unknown`);
  const { error } = (await response.json()) as NotFound;
  t.is(error.message, 'The model "gpt-unknown" does not exist. GET /v1/models lists the available models.');
});
