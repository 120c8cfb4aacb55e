import test from 'ava';
import { modelDisabled, modelNotFound } from '../../../shared/contract/model-errors.ts';

test('the error for a missing model contains the first characters of its name, and its field if there is one', (t) => {
  const unknown = modelNotFound('nope', ['body', 'model']);
  t.like(unknown, { code: 'model_not_found', status: 404, param: 'model' });
  t.is(unknown.message, 'The model "nope" does not exist. GET /v1/models lists the available models.');
  t.is(modelNotFound('nope').param, null);
  t.true(modelNotFound('m'.repeat(10_000)).message.length < 300);
});

test('the error for a model that is not served is the same everywhere', (t) => {
  const rest =
    ' is disabled, or no vendor currently serves it. Choose a model that GET /v1/models lists as active, or try again later.';
  t.is(modelDisabled('off').message, `model: The model "off"${rest}`);
  t.is(modelDisabled().message, `model: This model${rest}`);
  t.like(modelDisabled(), { code: 'model_disabled', status: 422, param: 'model' });
});
