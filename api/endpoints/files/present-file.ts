import type { FileObject } from '../../contract/batch-files.ts';
import type { FileSummary } from '../../../shared/work/files/file-record.ts';

const toSeconds = (ms: number): number => Math.floor(ms / 1_000);

/** Presents a file as OpenAI's API does. */
export const presentFile = ({
  id,
  name,
  purpose,
  byteLength,
  createdAtMs,
  expiresAtMs,
}: FileSummary): FileObject => ({
  id,
  object: 'file',
  bytes: byteLength,
  created_at: toSeconds(createdAtMs),
  expires_at: toSeconds(expiresAtMs),
  filename: name,
  purpose,
  status: 'processed',
  status_details: null,
});
