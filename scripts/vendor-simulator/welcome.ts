import { FAULT_HELP } from './faults.ts';
import type { LoggedRequest } from './request-log.ts';
import { DEFAULT_DIMENSIONS } from './vectors.ts';

/**
 * Help for new users: the address, a call in each dialect, and how to make it fail.
 * @param server the server that the simulator is like; null if it has all dialects
 */
export function renderWelcome(url: string, server: string | null): string {
  return server === null ? renderFullWelcome(url) : renderServerWelcome(url, server);
}

function renderServerWelcome(url: string, server: string): string {
  return `The vendor simulator listens on ${url}, and refuses and answers as ${server} does. An upstream for a catalog.yaml:

  like-${server}: { kind: openai, dialect: ${server}, baseUrl: ${url}/v1 }

Any key and any model name work. npm run -s simulate-vendor -- --help lists the words for faults; docs/simulator.md says
what the server refuses. Ctrl-C stops the simulator. Each call is printed as a line:
`;
}

function renderFullWelcome(url: string): string {
  return `The vendor simulator listens on ${url}. It supports the APIs of OpenAI, Anthropic and Google.
Any key and any model name work. Base URLs for a catalog.yaml, by kind:

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

Specify faults as words joined with +, in the model's name ("gpt-sim+slow-300+cut-5"), in the key ("sk-any+exhausted")
or in the header x-simulate. Or set them while the simulator runs, for all calls, for a model or for a key:

curl ${url}/faults -d '{"words": "fail-500"}'
curl ${url}/faults -d '{"words": "slow-3000", "model": "gpt-sim"}'
curl ${url}/faults                # shows the current faults
curl ${url}/faults -X DELETE      # removes them

npm run -s simulate-vendor -- --help lists the words. A catalog.yaml for a gateway, with a chat model whose first route
fails, an embedding model and an image model:

${renderCatalog(url)}
See docs/simulator.md for more. Ctrl-C stops the simulator. Each call is printed as a line:
`;
}

/**
 * A catalog with a chat model that has one failing and one working route, an embedding model and an image model.
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
    routes: # nine of ten requests try the first route first, and always fail over to the second
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
    size: [1024x1024, 1536x1024, 1024x1536]
    image_quality: { default: medium, choices: [low, medium, high] }
    max_image_count: 4
    pricing: { type: tokens, prompt: 500, completion: 4000 } # by tokens: previews and many input images cost more
    routes: [{ upstream: sim-openai, model: gpt-image-sim }]
`;
}

/** The part of --help after the options. */
export function renderFaultHelp(): string {
  return `Words for --faults, model names, API keys, the header x-simulate and POST /faults, joined with +. Later sources
override earlier ones: /faults for all, for a model, for a key, header, model name, key.
${FAULT_HELP}
While it runs: POST /faults {"words": "fail-500", "model": "gpt-sim"} (or "key"; without both, for all calls; empty
words, "", remove the faults), GET /faults, DELETE /faults.

Words in a model's name that are not faults:
  reasoner          OpenAI: reasons; refuses max_tokens and temperature (reasoning_effort makes any model reason)
  parallel          calls all of its tools in parallel
  cached cachewrite half of the prompt is read from the cache; a quarter is written to it
  claude-new        Anthropic: refuses temperature, top_p, top_k and thinking of type enabled
  wide              with --reply-words: words of 64 KB, so that a response fills every buffer on its path
  pauseturn         Anthropic: stops half-way with pause_turn, and continues when its text is sent back
  gemini-3          Gemini: requires thinkingLevel and returned thought signatures; others require thinkingBudget
  ids               Gemini: function calls have ids
A prompt that contains "blockme" is blocked by Gemini and refused by Anthropic.
`;
}

/** Formats a finished call. */
export function renderCall({ method, path, model, key, inputs, status, isAborted }: LoggedRequest): string {
  const outcome = status === null ? 'no response' : String(status);
  const aborted = isAborted ? ', aborted before its end' : '';
  const size = inputs === null ? '' : `  ${inputs} ${inputs === 1 ? 'input' : 'inputs'}`;
  return `${method} ${path}  ${model ?? '-'}  ${key ?? 'no key'}${size}  ${outcome}${aborted}`;
}
