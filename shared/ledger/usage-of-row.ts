import type { Usage } from '../catalog/cost.ts';
import type { RequestLogDocument } from './ledger-store.ts';

/** Returns the usage that a row of the request log was charged for. */
export const usageOfRow = (row: RequestLogDocument): Usage => ({
  promptTokens: row.promptTokens,
  cacheReadTokens: row.cacheReadTokens ?? 0,
  cacheWriteTokens: row.cacheWriteTokens ?? 0,
  completionTokens: row.completionTokens,
  images: row.images,
  imageQuality: row.imageQuality,
  imageSize: row.imageSize,
  durationMs: row.billedMs,
  characters: row.characters,
});

/** Whether the request failed and nothing was charged for it. */
export const isUncharged = (row: RequestLogDocument): boolean =>
  !row.success && row.costNano === 0n && row.shortfallNano === 0n;
