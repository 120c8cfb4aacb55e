import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { readDataType } from '../../shared/contract/data-uri.ts';
import type { Message } from '../../shared/contract/chat-messages.ts';
import { invalidField } from '../../shared/contract/errors.ts';

/** Extensions of the media types that are sent without a file name. */
const extensionOfType = new Map(
  Object.entries({
    'application/pdf': 'pdf',
    'application/json': 'json',
    'text/plain': 'txt',
    'text/csv': 'csv',
    'text/html': 'html',
    'text/markdown': 'md',
  }),
);

/**
 * Files of the messages, against what the model reads.
 * @throws AppError `validation_failed`
 */
export function checkFiles(messages: readonly Message[], { id, published }: CatalogModel): void {
  const taken = published.supported_file_types ?? [];
  let count = 0;
  for (const [i, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [j, part] of content.entries()) {
      if (part.type !== 'file' && !part.file) continue;
      const at = ['body', 'messages', i, 'content', j];
      if (taken.length === 0) throw invalidField(at, `${id} takes no files`);
      const { file_data: data, file_id: fileId, filename } = part.file ?? {};
      if (fileId) throw invalidField([...at, 'file', 'file_id'], 'no files are kept here: send file_data');
      const mediaType = readDataType(data ?? '');
      if (mediaType === null) {
        const example = 'data:application/pdf;base64,…';
        throw invalidField([...at, 'file', 'file_data'], `must be a base64 data URI such as ${example}`);
      }
      const extension = readExtension(filename) ?? extensionOfType.get(mediaType);
      if (extension === undefined || !taken.includes(extension)) {
        throw invalidField([...at, 'file'], `must be a file of one of these types: ${taken.join(', ')}`);
      }
      count += 1;
    }
  }
  const most = published.max_file_count;
  if (most !== null && count > most) {
    throw invalidField(['body', 'messages'], `must hold at most ${most} files for ${id}`);
  }
}

function readExtension(filename: string | null | undefined): string | undefined {
  return /\.([A-Za-z0-9]+)$/.exec(filename ?? '')?.[1]?.toLowerCase();
}
