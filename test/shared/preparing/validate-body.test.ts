import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { maxJsonDepth } from '../../../shared/encoding/json-reader.ts';
import { validateBody } from '../../../shared/preparing/validate-body.ts';

test('a body that is not valid is described field by field, with the locations of a body sent by itself', (t) => {
  const error = t.throws(
    () => validateBody('createChatCompletion', { model: 1, messages: [{ role: 'user', content: 2 }] }),
    { instanceOf: AppError },
  );
  t.is(error.code, 'validation_failed');
  t.is(error.status, 422);
  t.deepEqual(
    error.issues.map(({ loc }) => loc.join('.')),
    ['body.model', 'body.messages.0.content'],
  );
  for (const value of [null, [], 'text', 1])
    t.throws(() => validateBody('createEmbedding', value), { message: 'The body must be a JSON object.' });
});

test('each operation has its own schema, whose defaults are filled in', (t) => {
  const image = { model: 'm', prompt: 'a cat' };
  t.like(validateBody('createImage', { ...image }), { ...image, n: 1, response_format: 'b64_json' });
  t.like(validateBody('editImage', { ...image, image: 'a' }), { ...image, image: 'a', n: 1 });
  t.throws(() => validateBody('createImage', { model: 'm' }), { message: /^prompt: / });
  t.throws(() => validateBody('createEmbedding', image), { message: /^input: / });
  t.like(validateBody('createEmbedding', { model: 'm', input: 'a' }), { model: 'm', input: 'a' });
});

test('a body that no parser of bodies would accept is rejected, wherever it was parsed', (t) => {
  let nested: unknown = 'deep';
  for (let i = 0; i < maxJsonDepth; i++) nested = [nested];
  t.throws(() => validateBody('createEmbedding', { model: 'm', input: 'a', more: nested }), {
    message: `The body is nested more than ${maxJsonDepth} levels deep. Reduce the nesting.`,
  });
  const error = t.throws(
    () => validateBody('createEmbedding', { model: 'm', input: ['a', 'half \ud83d of a pair'] }),
    { instanceOf: AppError },
  );
  t.is(error.param, 'input.1');
  t.is(error.issues[0]!.type, 'unicode_invalid');
});
