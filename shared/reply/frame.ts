import { parse as parseUuid, stringify as stringifyUuid } from 'uuid';

/**
 * What a worker sends the api process that waits: `accepted` names the worker, `delta` carries bytes that are ready
 * for the socket, `result` and `error` end the request. A result that is large for a frame is `offered`, and sent as
 * `piece`s when it is asked for; one that is kept is `stored`.
 */
export const frameKinds = [
  'accepted',
  'delta',
  'progress',
  'result',
  'stored',
  'error',
  'offered',
  'piece',
] as const;
export type FrameKind = (typeof frameKinds)[number];

export interface FrameHeader {
  readonly requestId: string;
  /** Which dispatch of the request this answers: frames of an earlier one are stale. */
  readonly attempt: number;
  /** Counts the frames of one attempt from 0; a gap means that one was lost. */
  readonly sequence: number;
  readonly kind: FrameKind;
  /** Completion tokens generated so far: what a request is charged for if its worker dies now. */
  readonly tokens: number;
}

export interface Frame extends FrameHeader {
  readonly payload: Buffer;
}

/** length u32 (whole frame) · request id 16 bytes · attempt u16 · sequence u32 · kind u8 · tokens u32 · payload */
const headerLength = 31;

/** A request's id as frames carry it: parsed once, written with every frame. */
export function packRequestId(requestId: string): Uint8Array {
  return parseUuid(requestId);
}

/** Header and payload apart, for a message that is put together from many frames with one copy. */
export function encodeHeader(
  packedId: Uint8Array,
  header: Omit<FrameHeader, 'requestId'>,
  payloadLength: number,
): Buffer {
  const bytes = Buffer.allocUnsafe(headerLength);
  bytes.writeUInt32LE(headerLength + payloadLength, 0);
  bytes.set(packedId, 4);
  bytes.writeUInt16LE(header.attempt, 20);
  bytes.writeUInt32LE(header.sequence, 22);
  bytes.writeUInt8(frameKinds.indexOf(header.kind), 26);
  bytes.writeUInt32LE(header.tokens, 27);
  return bytes;
}

export function encodeFrame(frame: Frame): Buffer {
  const header = encodeHeader(packRequestId(frame.requestId), frame, frame.payload.length);
  return Buffer.concat([header, frame.payload]);
}

/** An offered result is cut into pieces of this size; only the last one is smaller. */
export const pieceBytes = 512 * 1024;

/** What an `offered` frame says: the length of the whole result. */
export const encodeOffer = (length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(length, 0);
  return bytes;
};

export const decodeOffer = (payload: Buffer): number => payload.readUInt32LE(0);

/** The frames of one message, whose payloads are views into it. @throws RangeError when it is cut or malformed. */
export function decodeFrames(message: Buffer): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at < message.length) {
    const length = message.readUInt32LE(at);
    const kind = frameKinds[message.readUInt8(at + 26)];
    if (length < headerLength || at + length > message.length || kind === undefined) {
      throw new RangeError(`malformed frame at byte ${at} of ${message.length}`);
    }
    frames.push({
      requestId: stringifyUuid(message.subarray(at + 4, at + 20)),
      attempt: message.readUInt16LE(at + 20),
      sequence: message.readUInt32LE(at + 22),
      kind,
      tokens: message.readUInt32LE(at + 27),
      payload: message.subarray(at + headerLength, at + length),
    });
    at += length;
  }
  return frames;
}
