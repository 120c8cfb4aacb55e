import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { droppedDefault } from '../../shared/catalog/dropped-default.ts';
import { defaultTemperature } from '../../shared/contract/chat.ts';
import type { ChatBody, UpstreamTarget } from '../upstreams/upstream.ts';

/**
 * Adds the API's default temperature, unless the caller set one or null. Models that reason reject a temperature, as do
 * servers whose route leaves the default out.
 */
export function fillTemperature(
  body: ChatBody,
  { published }: Pick<CatalogModel, 'published'>,
  { drops }: Pick<UpstreamTarget, 'drops'>,
): ChatBody {
  if (body['temperature'] !== undefined || published.reasoning === true || drops.has(droppedDefault))
    return body;
  return { ...body, temperature: defaultTemperature };
}
