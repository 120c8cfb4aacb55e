import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatEvent, WebSource } from '../upstream.ts';

/**
 * Returns the pages that a message or a delta cites in the format of OpenAI's search models; empty if it cites none.
 */
export function readCitations(index: number, message: JsonRecord): ChatEvent[] {
  const sources = readArray(message['annotations']).flatMap((annotation): WebSource[] => {
    const citation = isRecord(annotation) ? annotation['url_citation'] : null;
    const url = isRecord(citation) ? readText(citation['url']) : null;
    return url === null || !isRecord(citation) ? [] : [{ url, title: readText(citation['title']) }];
  });
  return sources.length === 0 ? [] : [{ type: 'sources', index, sources }];
}
