// Chats in the terminal. The answer is printed as it is generated.
//   node dist/examples/chat.js "What is a replica set?"     one question
//   node dist/examples/chat.js                              continues until Ctrl-D
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import type OpenAI from 'openai';
import { createGatewayClient, formatReceipt, readReceipt, runExample } from './gateway-client.ts';

type Message = OpenAI.ChatCompletionMessageParam;

await runExample(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: 'demo-echo' },
      system: { type: 'string' },
    },
  });
  const client = createGatewayClient(process.env);
  const messages: Message[] = values.system === undefined ? [] : [{ role: 'system', content: values.system }];
  const ask = async (question: string): Promise<void> => {
    messages.push({ role: 'user', content: question });
    const answer = await streamResponse(client, values.model, messages);
    messages.push({ role: 'assistant', content: answer });
  };

  if (positionals.length > 0) {
    await ask(positionals.join(' '));
    return;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Questions may also come from a pipe, one per line. No prompt is printed then.
  const prompt = (): void => {
    if (process.stdin.isTTY) terminal.prompt();
  };
  prompt();
  for await (const line of terminal) {
    if (line.trim() !== '') await ask(line);
    prompt();
  }
});

/** Prints the answer as it arrives. @returns the whole answer, for the next turn */
async function streamResponse(client: OpenAI, model: string, messages: readonly Message[]): Promise<string> {
  const stream = await client.chat.completions.create({
    model,
    messages: [...messages],
    stream: true,
    stream_options: { include_usage: true },
  });
  let answer = '';
  for await (const { choices, usage } of stream) {
    const text = choices[0]?.delta.content ?? '';
    answer += text;
    process.stdout.write(text);
    if (usage) {
      process.stdout.write('\n');
      process.stderr.write(`${usage.total_tokens} tokens, ${formatReceipt(readReceipt(usage))}\n`);
    }
  }
  return answer;
}
