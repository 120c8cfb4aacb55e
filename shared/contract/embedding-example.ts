import type { OperationExample } from './operation.ts';

/**
 * The model's vectors for the two texts, in ten-thousandths, as base64 of 16-bit integers. test/api/examples.test.ts
 * fails if the model returns anything else. To regenerate the vectors, send the body below and encode each one with
 * `Buffer.from(Int16Array.from(vector, (x) => Math.round(x * 10_000)).buffer).toString('base64')`.
 */
const catOnSofa =
  'YQKz/ZD9+/3uAdL9XgL0/mH/uv0/At39j/6d/Sv+uAAm/o4BZAGQ/bL/Ov99AOP9jv1sArD/SQFrAkUC3AGV/cIAlP3rABkB8v0SAVUAFv71AHwABQJD/20Cw/69/UcC/gFd/4IBRgDV/RH/rv1lAiD+Mf9U/rH/tf1jALr9Qv7u/qMAa/55AOYAj/1fAKH9hP9WAkj+TP9I/nICj/3GAZn9YP+6/SH/tQH+AYkAowAWAdz9s/2z/U0A5/8O/5/+Lv9+ANb9bAEU/hv+KgJQAY/9cP+hAIL/uQEbAqD+Cv5AAGUBXQJj/nb+6P8OAt3+WQFRAjQCkv17AC0CZwEi/lICjP5xAq79//1LAlv+Gv4R//AAHP9sAtL+Yf6rAEUBFv6z/ZL9Af9eAcn9YP43/mL+3P3V/fv9lP0S/xkAPAKJ/24CHAKb/rj9JALr/xz+U/5nAAz+PAHU/h3+RP/RATMBhAERAXH+W/5zAl/+Sv4GAtn+zv1kAnoAZwJp/vz/VwL+Aar+a/7L/dQAmv4VAQ7/mQEvAY792/+O/Sb+KQJyAB4Cs/31AUb/YgBmAv7/FP5E/uMBpwDsASj+SQFZ/osBDgFv/979zgFAAC4C8P21AIgBvgHfAcgAM/9g/3ICTP9dAKn9j/2kAFkCl/2c/pz9ZAKsABv/M/6a/isCPABzAUkCOAIcAi4AnP/D/zoCIv6jAM/9zv06AsL9JP8M/2wCt/19ARMBs/7WARACB/6l/SQCWgIAAuX/OgJuAGICkf2t/aD+oABVAIYAkAHE/iUBSwGd/UcCxAAwAF8A1wEXArj9YAE1AiECWgLsAOf9dP4QAED+c/7T/WECaAEv/mECj/2EACkA/f5LAioCR/6w/hz+F/6J/jICQgJpAm0CKgD0/+D9ogHt/Sn/NP/3/639PQJBAiUC7wFt/479bgKdAH//YQH9AZ79TP5v/jP+2gEwAuX/Bv6P/V//WQLu//n92f32/UkCIv82AE//v/1YAj//+wGY/eH+aQLD/Zv9TP+G/7QArgDEAaz9kP3sAYv+0P5fAL8BgwF4/8799QDU/lACYQEe/kIAYgI8AkUBUgFO/hL/PAHL/ff94gG6/mkCjf2wASf+bgKV/VcBxP2rAEcCUwJmAgj+zf0E/gICof0yANz+sgAlAb4B8v8o/v/+jADd/p4BewBuAm0CMQFHAlUC6f6XAN8BUwKg/c/9bALa/QIBIwJDAGYACAJbAWMBZQKPATICZQLP/TQCZwKhAJgAjv3zALX9UQKaAE//5f+I/l4CBwIGAAAAl/6UARH+kP8H/839VgJl/7MB5P/n/VQCowGmATkBO/9C/uf/lv0O/3ICmwFZ/x8CFv7C/Q==';
const taxLaw =
  '7f3KAfL9Av6t/7H+DAI5/hMCj/8zAcUBAv4UAuz98v1BABMC5QH/Ae/97P2xARQC7f3LAZ/+EwLt/ez9FAIKAj0A7P03AagBHf6uAez9BgJyAJL//QD4/RQCOf7t/SAAFAKo/vkADwL5/ez9DQJ9AfL9Qf/t/QACFf4IAVT/1QDv/Q4C7P0PAgcCTgFLARQCEQLyAQ8CLv+yARQCngATAvX97/3s/SH+8f21ATIANgDt/hr/pQGC/qr/uADu/QEBIf5c//D9FAJn/kMAFAIRApb/4gEBAhQCMQAN/ib+D/7WAVIAFAKRAXT/tQEH/uz9DALs/QcC7P1rAA0CXf/sAR//FAKc/lEAuv4a/rf+8f34/U4ANf7lAfn+Nf4VARMCAwLtAez9DgIJ/pf+7QHs/RQCKwAE/uz97P0PAez9Hv4UAvH+TgHu/fD9gwHNAAH+t/+PAAAC7P3s/aD+FAISAgsCJP53ABMC7P0V/ucB7P0TAtb/Xv4TAvH+FAIC/pX+FAIFAu397P1d/4gB2gHk/6IBCQLs/ez9CwI+/rP+7P3z/RMCZ/4RAh/+FALTAez9Kf4dAI3+8wF0AP39qwEV/uz9FAL4AdcB8/3y/u39rQHt/cIB+wEAAlQBbP7UARQC/AH0/Q0CCP63/7EBKv///Y7+7P0r//X9Ov4M/uz94wHw/e0B/QHnATH+SP7s/RQC9f3dAen/EwL7/Qz+DwE1ABMCPAFz/sf/DP75ABECBgLy/RQCBQHVAfP9Jf8OAhQCeQD9/jL/wf/x/QoC7f3y/RQCEwJh/4IAFAIRAegADgIUAsX+pv8U/nYADQLx/bP+Zv7s/fP/jf5DABX+mwHY/2X+DgJ0/uz9oAH5/bcBFALv/SX+JP4b/k4AsQHIAf0BEAIEARMCAwIGAjX/xgHs/fv9mgFm/goCjQD8ARQCFALJAS//+f2D/+H+8v3t/e79CwI6AF/+eP8UAlv+CAIUAk0A7P2L/uz9Pf6K/kEBLwEKAsEAEgIC/vz+FAKV/hECdQCd/uz9GP7s/fX9vwHs/aj/mP5i/hMCvv8UAg8C7P2G/hQCmAATAuz9/f0hAXQA3QEyAQH++wEUAu/9FALz/Qn+wwASAu/9XwBb/+79LgEUAgD+UwD2AdEB7P3B/+39EwL1/QkA8wD0/fL9DwJX/ooBFAKyAAYCFAIUAiABFAL5ARMCxgHrAT3/9v7+Ae39FAIKAeUBFAIUAgIBbv4T/hQCFALL/hQCXAD6/VMA7P3mAXj+FAKwAEv+7P0F/uz9vwBR/vz/bP8nAIv/ZwHtAVz/FALw/dj+FAIHAv/9EQLy/fj9uP9gAC/+FALs/RQCFAJI//QBCP4EArUB9P0r/g==';

function readVector(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64');
  return Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i) / 10_000);
}

export const embeddingExample: OperationExample = {
  body: { model: 'use-lite-en-512', input: ['a cat on the sofa', 'tax law'] },
  response: {
    id: '019aa64f-daeb-7d0e-8c44-5e9f0d6a1b27',
    created: 1_763_726_842,
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: readVector(catOnSofa) },
      { object: 'embedding', index: 1, embedding: readVector(taxLaw) },
    ],
    model: 'use-lite-en-512',
    usage: {
      prompt_tokens: 7,
      total_tokens: 7,
      total_time: 0.018,
      cost_request: 0.00007,
      free_request: false,
    },
  },
};
