// decision 0005
import type { IncomingHttpHeaders } from 'node:http';

/** What a caller may do if its request failed and may have been charged. */
export interface ChargeAdvice {
  readonly en: string;
  readonly ru: string;
}

export const hasIdempotencyKey = (headers: IncomingHttpHeaders): boolean =>
  headers['idempotency-key'] !== undefined;

/** @param hasKey whether the failed request had an Idempotency-Key */
export function adviseOnCharge(requestId: string, hasKey: boolean): ChargeAdvice {
  return hasKey
    ? {
        en:
          'It may still have been charged, for what was generated. Send it again with the same Idempotency-Key: if it was answered in full, ' +
          'you get that answer and are not charged again; if it broke off, it runs and is charged again. ' +
          `Its x-request-id is ${requestId}.`,
        ru:
          'Плата за сгенерированное всё же могла быть списана. Отправьте его снова с тем же Idempotency-Key: если ответ был ' +
          'готов целиком, вы получите его без повторного списания; если он оборвался, запрос выполнится и будет оплачен ' +
          `заново. x-request-id запроса: ${requestId}.`,
      }
    : {
        en:
          `It may still have been charged, for what was generated. Before you send it again, look for its x-request-id, ${requestId}, in ` +
          'GET /v1/users/request_logs. A request with an Idempotency-Key can be sent again without being charged twice.',
        ru:
          `Плата за сгенерированное всё же могла быть списана. Прежде чем отправить его снова, найдите его x-request-id, ${requestId}, ` +
          'в GET /v1/users/request_logs. Запрос с Idempotency-Key можно отправить снова без повторного списания.',
      };
}
