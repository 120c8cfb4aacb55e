import { parse as parseUuid, stringify as stringifyUuid } from 'uuid';

/**
 * What a worker sends the api process that waits: `accepted` names the worker, `delta` carries bytes that are ready
 * for the socket, `result` and `error` end the request. `stored` is a result that lies in the payload store.
 */
export const frameKinds = ['accepted', 'delta', 'progress', 'result', 'stored', 'error'] as const;
export type FrameKind = (typeof frameKinds)[number];

export interface Frame {
  readonly requestId: string;
  /** Which dispatch of the request this answers: frames of an earlier one are stale. */
  readonly attempt: number;
  /** Counts the frames of one attempt from 0; a gap means that one was lost. */
  readonly sequence: number;
  readonly kind: FrameKind;
  /** Completion tokens generated so far: what a request is charged for if its worker dies now. */
  readonly tokens: number;
  readonly payload: Buffer;
}

/** length u32 (whole frame) · request id 16 bytes · attempt u16 · sequence u32 · kind u8 · tokens u32 · payload */
const headerLength = 31;

export function encodeFrame(frame: Frame): Buffer {
  const bytes = Buffer.allocUnsafe(headerLength + frame.payload.length);
  bytes.writeUInt32LE(bytes.length, 0);
  bytes.set(parseUuid(frame.requestId), 4);
  bytes.writeUInt16LE(frame.attempt, 20);
  bytes.writeUInt32LE(frame.sequence, 22);
  bytes.writeUInt8(frameKinds.indexOf(frame.kind), 26);
  bytes.writeUInt32LE(frame.tokens, 27);
  bytes.set(frame.payload, headerLength);
  return bytes;
}

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
