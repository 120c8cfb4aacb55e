import { parseFileId } from './file-id.ts';
import type { FileVerdict } from './file-verdict.ts';

const filePurposes = ['batch', 'batch_output'] as const;

export type FilePurpose = (typeof filePurposes)[number];

/** A file of the API as a list shows it. */
export interface FileSummary {
  readonly id: string;
  readonly name: string;
  readonly purpose: FilePurpose;
  readonly byteLength: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export interface FileRecord extends FileSummary {
  /** Null for a file that was not checked. */
  readonly verdict: FileVerdict | null;
  /** When bytes were last added. */
  readonly modifiedAtMs: number;
  /** More segments may be appended. The bytes so far do not change. */
  readonly isGrowing: boolean;
}

/** An object in the bucket that is a part of a file, or all of it. */
export interface FileSegment {
  readonly key: string;
  readonly byteLength: number;
}

/** A file with where its content is. */
export interface FileContent {
  readonly file: FileRecord;
  /** In order. Their lengths add up to the length of the file. */
  readonly segments: readonly FileSegment[];
}

/** @param fields id, name, purpose and bytes, as Redis replies them */
export function parseSummary([id, name, purpose, bytes]: readonly [
  string,
  string,
  string,
  string,
]): FileSummary {
  const { createdAtMs = 0, expiresAtMs = 0 } = parseFileId(id) ?? {};
  return {
    id,
    name,
    purpose: purpose as FilePurpose,
    byteLength: Number(bytes),
    createdAtMs,
    expiresAtMs,
  };
}

/**
 * Parses a file from its Redis hash.
 * @param pairs names and values in turn
 * @param entries of its segments
 * @returns null if there is no such file
 */
export function parseFile(
  id: string,
  pairs: readonly string[],
  entries: readonly string[],
): FileContent | null {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < pairs.length; i += 2) fields.set(pairs[i]!, pairs[i + 1]!);
  const [name, purpose, bytes, key, verdict] = ['fn', 'p', 'b', 'k', 'v'].map((field) => fields.get(field));
  if (name === undefined || purpose === undefined || bytes === undefined) return null;
  const summary = parseSummary([id, name, purpose, bytes]);
  const file = {
    ...summary,
    modifiedAtMs: Number(fields.get('m') ?? summary.createdAtMs),
    verdict: verdict === undefined ? null : (JSON.parse(verdict) as FileVerdict),
    isGrowing: fields.get('g') === '1',
  };
  if (key !== undefined) return { file, segments: [{ key, byteLength: file.byteLength }] };
  return { file, segments: entries.map(parseSegment) };
}

function parseSegment(entry: string): FileSegment {
  const [key = '', bytes = ''] = entry.split(' ');
  return { key, byteLength: Number(bytes) };
}
