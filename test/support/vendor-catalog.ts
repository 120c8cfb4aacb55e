/** A catalog whose models are served by a simulated vendor; prices are odd, so that a wrong sum is noticed. */
export function vendorCatalog(vendorUrl: string): string {
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: chat }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: "gpt+slow-4000" }] }
  - { id: drip-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: "gpt+drip-200" }] }
  - { id: slow-embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: vendor, model: "emb+slow-4000" }] }
  - { id: slow-image, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: "img+slow-4000" }] }
`;
}
