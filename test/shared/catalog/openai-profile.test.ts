import test from 'ava';
import { findOpenAiProfile } from '../../../shared/catalog/openai-profile.ts';

const find = (baseUrl: string, model = 'some-model') => findOpenAiProfile(null, baseUrl, model);

test('the profile is that of the catalog, of a known address, or of a family of models', (t) => {
  t.is(findOpenAiProfile('vllm', 'https://api.openai.com/v1', 'mistral-small'), 'vllm');
  for (const [url, profile] of [
    ['https://api.openai.com/v1', 'openai'],
    ['https://api.mistral.ai/v1', 'mistral'],
    ['https://api.deepseek.com', 'deepseek'],
    ['https://api.groq.com/openai/v1', 'groq'],
    ['https://api.cerebras.ai/v1', 'cerebras'],
    ['https://openrouter.ai/api/v1', 'openrouter'],
    ['https://me.openai.azure.com/openai/v1', 'azure'],
    ['https://api.openai.com.evil.example/v1', 'compatible'],
    ['https://evil-mistral.ai/v1', 'compatible'],
    ['http://127.0.0.1:8000/v1', 'compatible'],
  ] as const) {
    t.is(find(url), profile, url);
  }
  for (const model of [
    'mistral-small',
    'mistralai/Ministral-8B',
    'open-mistral-nemo',
    'Codestral-22B',
    'pixtral',
  ])
    t.is(find('http://127.0.0.1:8000/v1', model), 'mistral', model);
  for (const model of ['open-mixtral', 'gpt-mistral', 'llama'])
    t.is(find('http://127.0.0.1:8000/v1', model), 'compatible', model);
});
