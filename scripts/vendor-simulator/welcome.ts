import { FAULT_HELP } from './faults.ts';
import type { LoggedRequest } from './request-log.ts';
import { DEFAULT_DIMENSIONS } from './vectors.ts';

/** Help for a new user: the address, a call in each dialect, and how to make it fail. */
export function renderWelcome(url: string): string {
  return `The vendor simulator listens on ${url}. It is a vendor of OpenAI's, Anthropic's and Google's form at once.
Any key will do, and any model's name. Base URLs for a catalog.yaml, by kind:

  openai      ${url}/v1
  anthropic   ${url}
  gemini      ${url}

Try it:

curl ${url}/v1/chat/completions -H 'content-type: application/json' \\
  -d '{"model": "gpt-sim", "messages": [{"role": "user", "content": "hello"}]}'

curl ${url}/v1/messages -H 'x-api-key: sk-sim' -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' \\
  -d '{"model": "claude-sim", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}'

curl '${url}/v1beta/models/gemini-sim:streamGenerateContent?alt=sse' -H 'x-goog-api-key: sk-sim' -H 'content-type: application/json' \\
  -d '{"contents": [{"parts": [{"text": "hello"}]}]}'

curl ${url}/v1/embeddings -H 'content-type: application/json' \\
  -d '{"model": "embedding-sim", "input": ["hello", "goodbye"], "dimensions": 4}'

What goes wrong is said in words joined with +, by the model's name ("gpt-sim+slow-300+cut-5"), by the key
("sk-any+exhausted") or by the header x-simulate. Or here and now, for all calls, a model's or a key's:

curl ${url}/faults -d '{"words": "fail-500"}'
curl ${url}/faults -d '{"words": "slow-3000", "model": "gpt-sim"}'
curl ${url}/faults                # what is set
curl ${url}/faults -X DELETE      # nothing is

npm run -s simulate-vendor -- --help tells the words. For a gateway, this is a catalog.yaml with a chat model whose
first route fails and a model of embeddings:

${renderCatalog(url)}
docs/simulator.md goes on from here. Ctrl-C stops it; until then each call is a line:
`;
}

/**
 * A catalog with one model that has a route that always fails and one that does not, one for embeddings and one for
 * images.
 */
export function renderCatalog(url: string): string {
  return `upstreams:
  sim-openai: { kind: openai, baseUrl: ${url}/v1, apiKeys: [sk-sim] }
  sim-anthropic: { kind: anthropic, baseUrl: ${url}, apiKeys: [sk-sim] }
  sim-gemini: { kind: gemini, baseUrl: ${url}, apiKeys: [sk-sim] }
models:
  - id: failover
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 50, completion: 150 }
    routes: # nine of ten requests begin with the first, and none of them ends there
      - { upstream: sim-openai, model: gpt-sim+fail-500, weight: 9 }
      - { upstream: sim-openai, model: gpt-sim, weight: 1 }
  - id: vectors
    type: embedding
    context: 8192
    dimensions: { default: ${DEFAULT_DIMENSIONS}, adjustable: true }
    pricing: { type: tokens, in_cost_per_million: 2 }
    routes: [{ upstream: sim-openai, model: embedding-sim }]
  - id: pictures
    type: image
    context: 8192
    input_modalities: [text, image]
    max_image_count: 4
    pricing: { type: image, cost_per_image: 1 }
    routes: [{ upstream: sim-openai, model: gpt-image-sim }]
`;
}

/** What --help prints after the options. */
export function renderFaultHelp(): string {
  return `Words for --faults, model names, API keys, the header x-simulate and POST /faults, joined with +; of two that say
the same, the later of these places counts: /faults for all, for a model, for a key, header, model name, key:
${FAULT_HELP}
While it runs: POST /faults {"words": "fail-500", "model": "gpt-sim"} (or "key"; neither is all calls; no words, "",
take back what was set), GET /faults, DELETE /faults.

Words within a model's name that are no faults:
  reasoner          OpenAI: thinks aloud; refuses max_tokens and temperature (reasoning_effort makes any model think)
  parallel          calls all of its tools at once
  cached cachewrite half of the prompt comes from the cache; a quarter is written there
  claude-new        Anthropic: refuses temperature, top_p, top_k and thinking of type enabled
  wide              with --reply-words: words of 64 KB, so that an answer fills every buffer on its way
  pauseturn         Anthropic: stops half-way with pause_turn, and goes on when its words are sent back
  gemini-3          Gemini: wants thinkingLevel, and thought signatures back; others want thinkingBudget
  ids               Gemini: function calls have ids
A prompt that contains "blockme" is blocked by Gemini and refused by Anthropic.
`;
}

/** Formats one call once it is over. */
export function renderCall({ method, path, model, key, inputs, status, isAborted }: LoggedRequest): string {
  const end = status === null ? 'not answered' : String(status);
  const left = isAborted ? ', cut or left before its end' : '';
  const size = inputs === null ? '' : `  ${inputs} ${inputs === 1 ? 'input' : 'inputs'}`;
  return `${method} ${path}  ${model ?? '-'}  ${key ?? 'no key'}${size}  ${end}${left}`;
}
