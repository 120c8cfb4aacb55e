import test from 'ava';
import { describeIssue } from '../../../shared/contract/describe-issue.ts';
import { modelDisabled, modelNotFound } from '../../../shared/contract/model-errors.ts';
import { reasonTexts, translateReason, writeReason } from '../../../shared/contract/reason-texts.ts';

const valuesOf = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).toSorted();

test('both languages of a reason have the same values', (t) => {
  for (const { en, ru } of Object.values(reasonTexts)) t.deepEqual(valuesOf(ru), valuesOf(en), en);
});

test('every reason is found by its English text, with its values', (t) => {
  for (const { en, ru } of Object.values(reasonTexts)) {
    const filled = (text: string): string => text.replaceAll(/\{(\w+)\}/g, 'gpt-4o "5" {x}');
    t.is(translateReason(filled(en)), filled(ru));
  }
  for (const error of [
    modelNotFound('a', [], 'b'),
    modelNotFound('{model}'),
    modelDisabled('c'),
    modelDisabled(),
  ])
    t.is(translateReason(error.message), error.publicMessageRu);
});

test('a field before a reason and the number of further ones behind it remain', (t) => {
  t.is(
    translateReason('messages.0.role: is required (and 2 more)'),
    'messages.0.role: обязательное поле (и ещё 2)',
  );
  t.is(translateReason('n: must be <= 4'), 'n: должно быть <= 4');
  t.is(translateReason('The vendor said: is required'), null);
  t.is(translateReason('something else'), null);
});

test('the types of a schema are translated as responses do', (t) => {
  for (const type of ['string', 'number', 'integer', 'boolean', 'array', 'object']) {
    const issue = describeIssue({
      keyword: 'type',
      params: { type },
      parentSchema: {},
      instancePath: '',
      schemaPath: '',
    });
    t.is(translateReason(issue.msg), issue.msgRu ?? null);
  }
});

test('values of a reason may contain anything', (t) => {
  const { en, ru } = writeReason('sameCustomId', { line: 3, id: '"$& $1 {line}"' });
  t.is(en, 'Line 3 has the same custom_id, "$& $1 {line}". Each line needs its own.');
  t.is(translateReason(en), ru);
});
