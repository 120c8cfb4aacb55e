/** Identifies a job or a batch. */
export interface OwnedId {
  readonly accountId: string;
  readonly id: string;
}

/**
 * A place in a list of jobs or batches, which is sorted by time, latest first. It stays a place of the list when the job
 * or batch is deleted.
 */
export interface ListPlace extends OwnedId {
  /** What the list is sorted by (Unix ms): the time of the creation, or that at which an ended batch is deleted. */
  readonly atMs: number;
}

/** Writes a place as the `last_id` of a page. */
export const formatPlace = ({ atMs, accountId, id }: ListPlace): string => `${atMs}:${accountId}:${id}`;

const placePattern = /^(\d{1,15}):([\w-]{1,100}):([\w-]{1,100})$/;

/** Returns null if a text is not the `last_id` of such a page. */
export function readPlace(text: string): ListPlace | null {
  const [, atMs, accountId, id] = placePattern.exec(text) ?? [];
  return id === undefined ? null : { atMs: Number(atMs), accountId: accountId!, id };
}

/** Sorts places as lists are: the latest first. Of places at one time, that of the last account, then id, is first. */
export function comparePlaces(one: ListPlace, other: ListPlace): number {
  return other.atMs - one.atMs || compareTexts(nameOf(other), nameOf(one));
}

const nameOf = ({ accountId, id }: OwnedId): string => `${accountId} ${id}`;
const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
