/* The XML writer; use gp_writer_find() to get it. */
#ifndef GP_OUT_XML_H
#define GP_OUT_XML_H

#include "out/writer.h"

extern const struct gp_writer gp_writer_xml;

#endif
