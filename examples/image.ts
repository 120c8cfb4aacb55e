// Generates an image from a prompt and writes it as a PNG.
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
  const [prompt, file = 'image.png'] = positionals;
  if (!prompt || positionals.length > 2) {
    throw new ExampleError('Usage: image "prompt" [image.png] [--size 1024x1024] [--model demo-svg-image]');
  }
  const client = createGatewayClient(process.env);
  const response = await client.images.generate({
    model: values.model,
    prompt,
    // Sizes depend on the model. If this one is not supported, the gateway's error lists those that are.
    size: values.size,
  });
  const base64 = response.data?.[0]?.b64_json;
  if (!base64) throw new ExampleError('The response contains no image.');
  await writeFile(file, Buffer.from(base64, 'base64'));
  process.stdout.write(`${file}\n`);
  process.stderr.write(`${values.size}, ${formatReceipt(readReceipt(response.usage))}\n`);
});
