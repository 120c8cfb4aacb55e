import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import type { OpenAiProfile } from '../../shared/catalog/openai-profile.ts';

/** Vendors whose names in OpenTelemetry's conventions are not those of the catalog. */
const providers: Partial<Readonly<Record<OpenAiProfile, string>>> = {
  mistral: 'mistral_ai',
  azure: 'azure.ai.openai',
};

/** Returns the `gen_ai.provider.name` of a route: a name of the conventions if they have one, otherwise the catalog's. */
export function providerOf({ profile, upstream }: Pick<CatalogRoute, 'profile' | 'upstream'>): string {
  switch (upstream.kind) {
    case 'anthropic':
      return 'anthropic';
    case 'gemini':
      return 'gcp.gemini';
    case 'builtin':
      return 'model_gateway';
    default:
      return providers[profile] ?? profile;
  }
}
