// Makes a picture from a prompt and writes it as a PNG.
//   node dist/examples/image.js "a lighthouse at dusk" lighthouse.png
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import {
  createGatewayClient,
  ExampleError,
  formatReceipt,
  readReceipt,
  runExample,
} from './gateway-client.ts';

await runExample(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string', default: 'demo-svg-image' },
      size: { type: 'string', default: '1024x1024' },
    },
  });
  const [prompt, file = 'picture.png'] = positionals;
  if (!prompt || positionals.length > 2) {
    throw new ExampleError('Usage: image "prompt" [picture.png] [--size 1024x1024] [--model demo-svg-image]');
  }
  const client = createGatewayClient(process.env);
  const answer = await client.images.generate({
    model: values.model,
    prompt,
    // Each model has sizes of its own; the gateway says which where this one is not among them.
    size: values.size,
  });
  const base64 = answer.data?.[0]?.b64_json;
  if (!base64) throw new ExampleError('The answer holds no picture.');
  await writeFile(file, Buffer.from(base64, 'base64'));
  process.stdout.write(`${file}\n`);
  process.stderr.write(`${values.size}, ${formatReceipt(readReceipt(answer.usage))}\n`);
});
