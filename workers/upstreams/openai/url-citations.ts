import { isRecord, type JsonRecord, readArray, readText } from '../json-value.ts';
import type { ChatEvent, WebSource } from '../upstream.ts';

/** Pages that a message, or a piece of one, cites as OpenAI's search models do; nothing where it cites none. */
export function readCitations(index: number, said: JsonRecord): ChatEvent[] {
  const sources = readArray(said['annotations']).flatMap((annotation): WebSource[] => {
    const citation = isRecord(annotation) ? annotation['url_citation'] : null;
    const url = isRecord(citation) ? readText(citation['url']) : null;
    return url === null || !isRecord(citation) ? [] : [{ url, title: readText(citation['title']) }];
  });
  return sources.length === 0 ? [] : [{ type: 'sources', index, sources }];
}
