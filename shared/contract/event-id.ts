/**
 * Returns the end of a job's or a stream's id for the ids of its events. It differs between them, so if a client mixes up
 * two of them, its last event id is ignored and it does not miss events.
 */
export const eventIdSuffix = (id: string): string => id.slice(-8);

/** Writes the id of an event of a stream, from the event's number. */
export const writeStreamEventId = (number: number, streamId: string): string =>
  `${number}.${eventIdSuffix(streamId)}`;

const streamEventId = /^[1-9]\d{0,8}\.[\da-f]{8}$/;

/** Returns the id of an event of this stream; null for any other text. */
export function readStreamEventId(text: string, streamId: string): string | null {
  const id = text.trim();
  return streamEventId.test(id) && id.endsWith(`.${eventIdSuffix(streamId)}`) ? id : null;
}
