/* The writer of out/xml.c; found by name through out/writer.h. */
#ifndef GP_OUT_XML_H
#define GP_OUT_XML_H

#include "out/writer.h"

extern const struct gp_writer gp_writer_xml;

#endif
