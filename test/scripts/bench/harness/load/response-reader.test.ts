import test from 'ava';
import {
  ResponseReader,
  type ParsedResponse,
} from '../../../../../scripts/bench/harness/load/response-reader.ts';

const json = '{"choices":[{"message":{"content":"hi"}}]}';
const whole = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n${json}`;

const delta = (text: string): string => `data: {"choices":[{"delta":{"content":"${text}"}}]}\n\n`;
const events = [delta(''), delta('one'), delta(' two'), 'data: {"usage":{}}\n\n', 'data: [DONE]\n\n'];
const chunks = events.map((event) => `${event.length.toString(16)}\r\n${event}\r\n`).join('');
const streamed = `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`;

const failed = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy';

function read(countsTokens: boolean, pieces: readonly string[]): ParsedResponse[] {
  const answers: ParsedResponse[] = [];
  const reader = new ResponseReader(countsTokens, (answer) => answers.push(answer));
  for (const piece of pieces) reader.push(Buffer.from(piece, 'latin1'));
  return answers;
}

test('responses are parsed the same wherever the bytes are split', (t) => {
  const wire = streamed + failed + streamed;
  const parse = (pieces: readonly string[]) =>
    read(true, pieces).map(({ firstByteAtMs: _firstByteAtMs, ...response }) => response);
  const unsplit = parse([wire]);
  t.deepEqual(
    unsplit.map(({ status, tokens, isDone, body }) => ({ status, tokens, isDone, body })),
    [
      { status: 200, tokens: 2, isDone: true, body: null },
      { status: 503, tokens: 0, isDone: false, body: 'busy' },
      { status: 200, tokens: 2, isDone: true, body: null },
    ],
  );
  t.deepEqual(parse(wire.split('')), unsplit);
  for (let cut = 1; cut < wire.length; cut++) {
    t.deepEqual(parse([wire.slice(0, cut), wire.slice(cut)]), unsplit);
  }
});

test('a stream without its end marker is not done', (t) => {
  const [answer] = read(true, [streamed.replace('[DONE]', '[LOST]')]);
  t.false(answer?.isDone);
});

test('the reader returns bodies only while keepsBody is set', (t) => {
  const answers: ParsedResponse[] = [];
  const reader = new ResponseReader(false, (answer) => answers.push(answer));
  reader.keepsBody = true;
  reader.push(Buffer.from(whole));
  reader.keepsBody = false;
  reader.push(Buffer.from(whole + whole));
  t.deepEqual(
    answers.map(({ body, bodyBytes }) => ({ body, bodyBytes })),
    [json, null, null].map((body) => ({ body, bodyBytes: json.length })),
  );
});

test('input that is not an HTTP response is rejected', (t) => {
  t.throws(() => read(false, ['HTTP/1.1 200 OK\r\n\r\nto the end']), { message: /without a length/ });
});
